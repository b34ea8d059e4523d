//! `completions` and `man`: the command line, for shells and readers.

use clap::CommandFactory as _;

use super::args::Cli;
use super::failure::Failure;
use super::shell::Shell;

pub fn completions(which: clap_complete::Shell, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    let mut text = Vec::new();
    clap_complete::generate(which, &mut Cli::command(), "cudalint", &mut text);
    shell.stdout.write_all(&text)?;
    shell.stdout.flush()?;
    Ok(0)
}

/// The manual page of the program or of one of its commands.
pub fn manual(command: Option<&str>, shell: &mut Shell<'_>) -> Result<u8, Failure> {
    let mut program = Cli::command();
    program.build();
    let page = match command {
        None => program,
        Some(name) => match program.find_subcommand(name) {
            Some(found) => found.clone(),
            None => return Err(Failure::Usage(format!("no command `{name}`"))),
        },
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text)?;
    shell.stdout.write_all(&text)?;
    shell.stdout.flush()?;
    Ok(0)
}
