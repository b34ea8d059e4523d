//! How many kernels of some files compile as device slices? `slices FILE…`; a file's folder and those below it are its
//! project. Needs NVRTC (`CUDALINT_NVRTC`), no GPU; with `PRINT=1`
//! it prints the slices as JSON lines and compiles nothing. Prints a line per kernel that does not compile and the share that does.

use std::path::Path;

use cudalint::source::{SourceFile, Sources};
use cudalint::verify::{self, compile};

fn main() {
    let (mut good, mut all) = (0, 0);
    for path in std::env::args().skip(1) {
        let mut sources = Sources::default();
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let file = sources.add(SourceFile::from_bytes(&path, bytes));
        let folder = Path::new(&path).parent().unwrap_or(Path::new("."));
        add(folder, Path::new(&path), &mut sources, 2);
        let slicer = verify::Slicer::new(&sources);
        for kernel in verify::kernels(&sources, file) {
            all += 1;
            let source = match slicer.slice(file, None, &kernel, &[]) {
                Ok(source) => source,
                Err(why) => {
                    println!("SLICE {path} {kernel}: {why}");
                    continue;
                }
            };
            if std::env::var_os("PRINT").is_some() {
                println!("{}", serde_json::json!({ "path": path, "kernel": kernel, "source": source }));
                continue;
            }
            let request = compile::Request {
                source: &source,
                kernel: "",
                arch: 90.into(),
                defines: &[],
                include_dirs: &[],
            };
            match compile::nvrtc(&request) {
                Ok(_) => good += 1,
                Err(log) => {
                    let line = log.lines().find(|line| line.contains("error")).or(log.lines().next());
                    println!("NVRTC {path} {kernel}: {}", line.unwrap_or_default());
                }
            }
        }
    }
    println!("{good} of {all} kernels compile");
}

fn add(folder: &Path, except: &Path, sources: &mut Sources, depth: u32) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let source = path
            .extension()
            .and_then(|e| e.to_str())
            .is_some_and(|e| ["cu", "cuh", "h", "hpp", "inl", "cuhpp", "hxx"].contains(&e));
        if path.is_dir() && depth > 0 && sources.len() < 300 {
            add(&path, except, sources, depth - 1);
        } else if source
            && path != except
            && sources.len() < 300
            && let Ok(bytes) = std::fs::read(&path)
        {
            sources.add(SourceFile::from_bytes(&path, bytes));
        }
    }
}
