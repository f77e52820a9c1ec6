//! Adding jobs and looking after them.
