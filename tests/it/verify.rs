//! Verify without a GPU: compiling with the PyPI package `nvidia-cuda-nvrtc` where it is installed, reading the machine
//! code, replaying the last run on a device.

use cudalint::verify::compile::{self, Request};
use cudalint::verify::job::{Arch, Direction, Job, Run, Space, Status};
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
    compile::nvrtc(&request(&source, kernel, arch)).unwrap_or_else(|log| panic!("{kernel}: {log}"))
}

fn request<'a>(source: &'a str, kernel: &'a str, arch: u32) -> Request<'a> {
    Request { source, kernel, arch: Arch::from(arch), defines: &[], include_dirs: &[] }
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
    let request = request(KERNELS, "copy<missing>", 90);
    let error = compile::nvrtc(&request).expect_err("no such type");
    assert!(error.contains("identifier \"missing\" is undefined"), "{error}");
}

#[test]
fn recording_source_compiles() {
    let Some(()) = nvrtc() else { return };
    const PLAIN: &str = "#line 1 \"a.cu\"\n__global__ void k(const float* in, float* out) {\n  out[threadIdx.x] = in[0];\n}\n";
    let sites = [
        recorder::Site { file: "a.cu", line: 2, column: 3, text: "out[threadIdx.x]" },
        recorder::Site { file: "a.cu", line: 2, column: 22, text: "in[0]" },
    ];
    let (source, found) = recorder::instrument(PLAIN, &sites);
    assert_eq!(found, [true, true]);
    if let Err(log) = compile::nvrtc(&request(&source, "k", 90)) {
        panic!("{log}\n{source}");
    }
    let (source, found) = recorder::instrument_tracing(PLAIN, &sites, 2);
    assert_eq!(found, [true, true]);
    if let Err(log) = compile::nvrtc(&request(&source, "k", 90)) {
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
        let source = verify::Slicer::new(&sources)
            .slice(file, None, kernel, &[])
            .unwrap_or_else(|why| panic!("{kernel}: {why}"));
        let request = request(&source, kernel, 90);
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

#[test]
fn a_dry_run_compiles_for_the_architecture_that_is_named() {
    let Some(()) = nvrtc() else { return };
    let dry =
        ["--isolated", "--all", "--dry-run", "--kernel", "strides", "fixtures/verify/kernels.cu", "--arch"];
    for arch in ["sm_80", "sm_90a", "sm_120"] {
        let output = cudalint(&[dry.as_slice(), &[arch]].concat());
        let shown = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(shown.contains(&format!("// compiles for {arch} with NVRTC ")), "{shown}");
    }
    let output = cudalint(&[dry.as_slice(), &["sm_35"]].concat());
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--arch sm_35: NVRTC") && said.contains("sm_90"), "{said}");
}

/// No compiler takes a lambda of host code without its host, or a macro that no file defines.
#[test]
fn lambdas_and_loop_macros_compile() {
    let Some(()) = nvrtc() else { return };
    let dry = ["--isolated", "--all", "--dry-run", "--arch", "sm_90"];
    let kernels = [("lambdas", "each", 4), ("types", "each", 1), ("templates", "typed_loop", 1)];
    for (file, kernel, launches) in kernels {
        let path = format!("fixtures/kernels/language/{file}.cu");
        let output = cudalint(&[dry.as_slice(), &["--kernel", kernel, &path]].concat());
        let shown = String::from_utf8_lossy(&output.stdout);
        assert_eq!(shown.matches("// compiles for sm_90 with NVRTC ").count(), launches, "{shown}");
    }
}

#[test]
fn wrong_use_is_exit_status_2() {
    let file = "fixtures/verify/kernels.cu";
    let uses = [
        (["--dry-run", "--arch", "gh100", file], "no architecture such as `sm_90`"),
        (["--dry-run", "--output-format", "xml", file], "`xml` is none of text, json, sarif"),
        (["--dry-run", "--kernel", "missing", file], "--kernel missing: these files have no such kernel"),
        (["--dry-run", "--rule", "no-such-rule", file], "no-such-rule"),
    ];
    for (args, wanted) in uses {
        let output = cudalint(&args);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(wanted), "{args:?}: {said}");
    }
}

/// Every fix of a kernel is a translation unit of its own, and a rule's findings alone are planned where it is named.
#[test]
fn fixes_are_kept_apart() {
    let folder = tempfile::tempdir().expect("a directory");
    let kernel = "__global__ void k(const float* a, float* out) {\n\
                  __shared__ float s[32][32]; __shared__ float t[32][32];\n\
                  int x = threadIdx.x, y = threadIdx.y;\n\
                  s[y][x] = a[y * 32 + x]; t[y][x] = a[x + 32 * y + 1024];\n\
                  __syncthreads();\n\
                  for (int i = 0; i < 16; ++i) out[y * 32 + x] += a[i * 1024 + y * 32 + x];\n\
                  out[y * 32 + x] += s[x][y];\n\
                  out[y * 32 + x] += t[x][y];\n}\n\
                  void run(float* a, float* out) { k<<<1, dim3(32, 32)>>>(a, out); }\n";
    let file = folder.path().join("a.cu");
    std::fs::write(&file, kernel).expect("the file is written");
    let kept = folder.path().join("kept");
    let (file, keep) = (file.display().to_string(), kept.display().to_string());
    let output = cudalint(&["--isolated", "--dry-run", "--keep", &keep, &file]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let job: Job = serde_json::from_str(&std::fs::read_to_string(kept.join("0000-k.json")).expect("a job"))
        .expect("the job is readable");
    let fixes: Vec<(&str, bool)> =
        job.fixes.iter().map(|fix| (fix.rule.as_str(), fix.count_requests)).collect();
    let padding = ("bank-conflict", false);
    assert!(fixes.contains(&padding) && fixes.contains(&("missing-restrict", true)), "{fixes:?}");
    assert_eq!(fixes.iter().filter(|fix| **fix == padding).count(), 2, "{fixes:?}");
    for (at, fix) in job.fixes.iter().enumerate() {
        assert_ne!(fix.source, job.source);
        assert_eq!(fix.ids.is_empty(), fix.count_requests, "{fix:?}");
        let unit = std::fs::read_to_string(kept.join(format!("0000-k-fix{at}.cu"))).expect("a unit");
        assert!(unit.ends_with(&fix.source));
    }
    let output = cudalint(&["--isolated", "--dry-run", "--rule", "uncoalesced-access", &file]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "");
}

#[test]
fn a_window_is_planned_or_its_reason_given() {
    let folder = tempfile::tempdir().expect("a directory");
    let planned = |bytes: &str| {
        let text = format!(
            "void run(cudaStream_t stream, float* table, size_t bytes) {{\n\
             cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 4 << 20);\n\
             cudaStreamAttrValue attr = {{}};\n\
             attr.accessPolicyWindow.num_bytes = {bytes};\n\
             attr.accessPolicyWindow.hitRatio = 0.5f;\n\
             attr.accessPolicyWindow.hitProp = cudaAccessPropertyPersisting;\n\
             cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &attr);\n}}\n"
        );
        std::fs::write(folder.path().join("a.cu"), text).expect("the file is written");
        let output = cudalint(&["--isolated", "--dry-run", &folder.path().display().to_string()]);
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let known = planned("1 << 20");
    assert!(
        known.contains("a.cu:7 (persisting-l2-not-reset): a window of 1048576 B, hit ratio 0.5, 4194304 B"),
        "{known}"
    );
    let unknown = planned("bytes");
    assert!(unknown.contains("not run: `num_bytes`: the value of `bytes` is not known"), "{unknown}");
}
