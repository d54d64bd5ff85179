//! See the library.

fn main() -> std::process::ExitCode {
    turnkeep_guard::main()
}
