//! Verify without a GPU: compiling with the PyPI package `nvidia-cuda-nvrtc` where it is installed, reading the machine
//! code, replaying the last run on a device.

use cudalint::verify::compile::{self, Request};
use cudalint::verify::job::{Direction, Job, Run, Space, Status};
use cudalint::verify::{self, compare, recorder, sass};

const KERNELS: &str = include_str!("../../fixtures/verify/kernels.cu");
const RECORDED: &str = include_str!("../../fixtures/verify/recorded.json");

/// `None`, with the reason printed, where NVRTC is not installed.
fn nvrtc() -> Option<()> {
    match verify::availability().nvrtc {
        Ok(_) => Some(()),
        Err(why) => {
            eprintln!("skipped: {why}");
            None
        }
    }
}

fn compiled(kernel: &str, arch: u32) -> compile::Cubin {
    let source = format!("#line 1 \"kernels.cu\"\n{KERNELS}");
    let request = Request { source: &source, kernel, arch, ..Request::default() };
    compile::nvrtc(&request).unwrap_or_else(|log| panic!("{kernel}: {log}"))
}

#[test]
fn availability_never_panics_and_names_what_is_missing() {
    let text = verify::availability().to_string();
    assert_eq!(text.lines().count(), 4, "{text}");
}

#[test]
fn template_instances_compile_by_name_expression() {
    let Some(()) = nvrtc() else { return };
    let cubin = compiled("view::column<float, 16>", 90);
    assert!(cubin.name.starts_with("_ZN4view6columnIfLi16EE"), "{}", cubin.name);
    let wide = |arch| {
        let cubin = compiled("copy<float4>", arch);
        let found: Vec<_> =
            sass::instructions(&cubin.bytes, &cubin.name).into_iter().map(|(_, i)| i).collect();
        found.iter().map(|i| (i.opcode.clone(), i.space, i.operation, i.bytes)).collect::<Vec<_>>()
    };
    // One 16-byte load and one 16-byte store on every architecture.
    for arch in [75, 80, 90, 100, 120] {
        let expected = [
            ("LDG.128".to_owned(), Some(Space::Global), Direction::Load, 16),
            ("STG.128".to_owned(), Some(Space::Global), Direction::Store, 16),
        ];
        assert_eq!(wide(arch), expected, "sm_{arch}");
    }
}

#[test]
fn an_unknown_instance_is_an_error_with_the_compilers_words() {
    let Some(()) = nvrtc() else { return };
    let request = Request { source: KERNELS, kernel: "copy<missing>", arch: 90, ..Request::default() };
    let error = compile::nvrtc(&request).expect_err("no such type");
    assert!(error.contains("identifier \"missing\" is undefined"), "{error}");
}

#[test]
fn recording_source_compiles() {
    let Some(()) = nvrtc() else { return };
    let source = "#line 1 \"a.cu\"\n__global__ void k(const float* in, float* out) {\n  out[threadIdx.x] = in[0];\n}\n";
    let sites = [
        recorder::Site { file: "a.cu", line: 2, column: 3, text: "out[threadIdx.x]" },
        recorder::Site { file: "a.cu", line: 2, column: 22, text: "in[0]" },
    ];
    let (source, found) = recorder::instrument(source, &sites);
    assert_eq!(found, [true, true]);
    let request = Request { source: &source, kernel: "k", arch: 90, ..Request::default() };
    if let Err(log) = compile::nvrtc(&request) {
        panic!("{log}\n{source}");
    }
}

/// The record holds what a device did on its date; verdicts are judged anew.
#[test]
fn the_recorded_run_still_confirms() {
    #[derive(serde::Deserialize)]
    struct Record {
        date: String,
        runs: Vec<(Job, Run)>,
    }
    let record: Record = serde_json::from_str(RECORDED).expect("the record is readable");
    assert_eq!(record.date.len(), 10);
    let (mut confirmed, mut not_run) = (0, 0);
    for (job, run) in &record.runs {
        for verdict in compare::compare(job, run) {
            match verdict.status {
                Status::Confirmed => confirmed += 1,
                Status::NotRun => not_run += 1,
                Status::Refuted => panic!("{}: {verdict}", job.kernel),
            }
        }
    }
    assert!(confirmed >= 50, "{confirmed} confirmed, {not_run} not run");
}

#[test]
fn without_a_driver_a_job_is_not_run() {
    if verify::availability().driver.is_ok() {
        return;
    }
    let launcher = verify::Launcher {
        program: env!("CARGO_BIN_EXE_cudalint").into(),
        args: vec!["verify-child".to_owned()],
        timeout: std::time::Duration::from_secs(60),
    };
    let (run, _) = verify::verify(&Job { kernel: "k".to_owned(), ..Job::default() }, &launcher);
    assert!(run.failure.as_deref().is_some_and(|failure| failure.contains("libcuda.so.1")), "{run:?}");
}

/// Every kernel of the fixture compiles as a slice of its own.
#[test]
fn slices_compile() {
    let Some(()) = nvrtc() else { return };
    let mut sources = cudalint::source::Sources::default();
    let file = sources.add(cudalint::source::SourceFile::new("kernels.cu", KERNELS.to_owned()));
    for kernel in ["strides", "structs", "whole_structs", "view::column<double, 2>", "transpose", "hangs"] {
        let source =
            verify::Slicer::new(&sources).slice(file, kernel).unwrap_or_else(|why| panic!("{kernel}: {why}"));
        let request = Request { source: &source, kernel, arch: 90, ..Request::default() };
        if let Err(log) = compile::nvrtc(&request) {
            panic!("{kernel}: {log}\n{source}");
        }
    }
}

fn cudalint(args: &[&str]) -> std::process::Output {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_cudalint"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .arg("verify")
        .args(args)
        .output()
        .expect("cudalint starts")
}

#[test]
fn the_command_says_what_is_missing() {
    if verify::availability().driver.is_ok() {
        return;
    }
    let output = cudalint(&["fixtures/verify"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("driver: missing: libcuda.so.1"), "{said}");
}

#[test]
fn a_dry_run_shows_source_and_inputs() {
    let output = cudalint(&["--isolated", "--all", "--dry-run", "fixtures/verify/kernels.cu"]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let kernel = shown.split("// kernel `rows_16`").nth(1).expect("the kernel is shown");
    let kernel = kernel.split("// kernel `").next().unwrap_or_default();
    assert!(kernel.contains("// argument 2: 1024\n"), "{kernel}");
    assert!(kernel.contains("#line 72 \"fixtures/verify/kernels.cu\"\n__global__ void rows_16("), "{kernel}");
    assert!(!kernel.contains("void strides("), "{kernel}");
}
