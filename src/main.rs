use std::process::ExitCode;

fn main() -> ExitCode {
    // `cudalint verify` starts itself so, once per kernel; nobody else does.
    #[cfg(feature = "verify")]
    if std::env::args_os().nth(1).is_some_and(|arg| arg == "verify-child") {
        return ExitCode::from(cudalint::verify::child_main());
    }
    cudalint::cli::main()
}
