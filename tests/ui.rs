//! What a user reads: programs with a mistake and the text the compiler prints for each, and programs without one.
//!
//! Most texts are ours; those of the compiler's own are as the current stable toolchain prints them.
//!
//! `TRYBUILD=overwrite cargo test -p dq-tests --test ui` writes the texts anew; read each one as a user would.

#[test]
fn every_mistake_has_its_text_and_a_program_without_one_compiles() {
    let programs = trybuild::TestCases::new();
    programs.pass("ui/pass/*.rs");
    programs.compile_fail("ui/fail/*.rs");
}
