//! Programs with a mistake, each with the error that the compiler prints for it, and programs that compile.
//!
//! Most errors come from dq's macros. The compiler's own are those of the current stable toolchain.
//!
//! `TRYBUILD=overwrite cargo test -p dq-tests --test ui` writes the errors again; read each one as a user would.

#[test]
fn every_mistake_has_its_text_and_a_program_without_one_compiles() {
    let programs = trybuild::TestCases::new();
    programs.pass("ui/pass/*.rs");
    programs.compile_fail("ui/fail/*.rs");
}
