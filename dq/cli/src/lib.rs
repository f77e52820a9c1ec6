//! What the program `dq` does: it moves the jobs of dq between stores.
