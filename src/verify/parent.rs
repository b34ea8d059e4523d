//! The parent's side: one child process per job, with a timeout.

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::child::{ANSWER, STEP};
use super::job::{Job, Run, STOPPED};

/// How children are started and how long they may take.
#[derive(Clone, Debug)]
pub struct Launcher {
    /// The program and the arguments that make it call [`super::child_main`].
    pub program: PathBuf,
    pub args: Vec<String>,
    pub timeout: Duration,
}

impl Launcher {
    /// This executable with the hidden subcommand `verify-child`, and ten seconds.
    pub fn this_executable() -> std::io::Result<Launcher> {
        Ok(Launcher {
            program: std::env::current_exe()?,
            args: vec!["verify-child".to_owned()],
            timeout: Duration::from_secs(10),
        })
    }

    pub fn limited(self, timeout: Duration) -> Launcher {
        Launcher { timeout, ..self }
    }

    /// Runs one job in a child process; whatever happens there is in the answer.
    pub fn run(&self, job: &Job) -> Run {
        let begun = Instant::now();
        let mut run =
            self.spawn(job).unwrap_or_else(|reason| Run { failure: Some(reason), ..Run::default() });
        run.seconds = begun.elapsed().as_secs_f64();
        run
    }

    fn spawn(&self, job: &Job) -> Result<Run, String> {
        let job = Job { seconds: self.timeout.as_secs_f64(), ..job.clone() };
        let text = serde_json::to_vec(&job).map_err(|error| format!("the job has no JSON form: {error}"))?;
        let mut command = Command::new(&self.program);
        command.args(&self.args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child =
            command.spawn().map_err(|error| format!("{} does not start: {error}", self.program.display()))?;
        let stdin = child.stdin.take();
        let feeder = std::thread::spawn(move || {
            // A child that ends early closes the pipe; its answer or exit code says why.
            stdin.map(|mut stdin| stdin.write_all(&text))
        });
        let output = drain(child.stdout.take());
        let errors = drain(child.stderr.take());
        let ended = wait(&mut child, self.timeout);
        let _ = feeder.join();
        let output = output.join().unwrap_or_default();
        let errors = errors.join().unwrap_or_default();
        if let Some(run) = answer(&output) {
            return Ok(run);
        }
        let step = last_line(&output, STEP).unwrap_or("starting");
        Err(match ended {
            None => format!("{STOPPED} {:.0} s while {step}", self.timeout.as_secs_f64()),
            Some(status) => {
                let said = errors.lines().last().unwrap_or_default().trim();
                let said = if said.is_empty() { String::new() } else { format!(": {said}") };
                format!("the child process ended while {step} ({status}){said}")
            }
        })
    }
}

/// The last answer in a child's output.
fn answer(output: &str) -> Option<Run> {
    serde_json::from_str(last_line(output, ANSWER)?).ok()
}

fn last_line<'a>(output: &'a str, mark: &str) -> Option<&'a str> {
    output.lines().rev().find_map(|line| line.strip_prefix(mark))
}

/// Reads a pipe to its end beside the waiting; a flood of output is cut at its front half.
fn drain(pipe: Option<impl Read + Send + 'static>) -> std::thread::JoinHandle<String> {
    const MOST: usize = 64 << 20;
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        let Some(mut pipe) = pipe else { return String::new() };
        let mut chunk = [0u8; 8192];
        while let Ok(length @ 1..) = pipe.read(&mut chunk) {
            kept.extend(chunk.iter().take(length));
            if kept.len() > MOST {
                kept.drain(..MOST / 2);
            }
        }
        String::from_utf8_lossy(&kept).into_owned()
    })
}

/// The exit status, or `None` where the child had to be killed.
fn wait(child: &mut Child, timeout: Duration) -> Option<std::process::ExitStatus> {
    let deadline = Instant::now() + timeout;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(2)),
            Ok(None) | Err(_) => {
                // Already ended is as good as killed; the wait reaps it.
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout: Duration) -> Launcher {
        Launcher { program: "/bin/sh".into(), args: vec!["-c".to_owned(), script.to_owned()], timeout }
    }

    #[test]
    fn a_hanging_child_is_killed_and_its_step_named() {
        let script = format!("echo '{STEP}running the kernel'; exec sleep 100");
        let run = shell(&script, Duration::from_millis(300)).run(&Job::default());
        assert!(run.seconds < 5.0);
        assert_eq!(run.failure.as_deref(), Some("stopped after 0 s while running the kernel"));
    }

    #[test]
    fn a_crashing_child_is_reported() {
        let run = shell("echo no luck >&2; exit 7", Duration::from_secs(10)).run(&Job::default());
        let failure = run.failure.unwrap_or_default();
        assert!(failure.contains("while starting") && failure.contains("no luck"), "{failure}");
    }

    #[test]
    fn printf_of_a_kernel_does_not_hide_the_answer() {
        let script = format!("echo 'hello from lane 3'; echo; echo '{ANSWER}{{\"seconds\":1}}'; echo bye");
        let run = shell(&script, Duration::from_secs(10)).run(&Job::default());
        assert_eq!(run.failure, None);
    }

    #[test]
    fn a_missing_program_is_a_failure_not_a_panic() {
        let launcher =
            Launcher { program: "/nonexistent".into(), args: vec![], timeout: Duration::from_secs(1) };
        assert!(launcher.run(&Job::default()).failure.is_some_and(|f| f.contains("does not start")));
    }
}
