//! A line on the terminal while a run takes long; nothing where it does not.

use std::io::Write as _;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use super::output::counted;
use super::shell::Shell;

/// Runs shorter than this show nothing.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// Ends, and clears its line, when it is dropped.
pub struct Progress {
    running: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    pub fn start(shell: &Shell<'_>, files: usize) -> Progress {
        if !shell.progress {
            return Progress { running: None };
        }
        let (sender, receiver) = mpsc::channel();
        let wait = move || {
            if receiver.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                let mut stderr = std::io::stderr();
                let _ = write!(stderr, "checking {}…", counted(files, "file"));
                let _ = stderr.flush();
                let _ = receiver.recv();
                let _ = write!(stderr, "\r\x1b[K");
            }
        };
        Progress { running: Some((sender, std::thread::spawn(wait))) }
    }
}

/// `[#####---------------] 10 of 40`
#[cfg(feature = "verify")]
pub fn bar(done: usize, count: usize) -> String {
    const WIDTH: usize = 20;
    let full = (WIDTH * done).checked_div(count).unwrap_or(WIDTH).min(WIDTH);
    format!("[{}{}] {done} of {count}", "#".repeat(full), "-".repeat(WIDTH - full))
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.running.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

#[cfg(all(test, feature = "verify"))]
mod tests {
    #[test]
    fn a_bar_is_as_full_as_the_work_is_done() {
        assert_eq!(super::bar(10, 40), "[#####---------------] 10 of 40");
        assert_eq!(super::bar(0, 0), "[####################] 0 of 0");
    }
}
