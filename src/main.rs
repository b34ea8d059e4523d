use std::process::ExitCode;

fn main() -> ExitCode {
    cudalint::cli::main()
}
