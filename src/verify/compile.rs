//! Source to CUBIN: NVRTC, and nvcc where a whole file is at hand. Works without a device.

use std::ffi::{CStr, CString, c_char};
use std::path::Path;
use std::process::Command;

use cudarc::nvrtc::{result, sys};

use super::job::Arch;
use super::library;

/// What to compile and how.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub source: &'a str,
    /// A name expression, `k<float, 16>`. Empty: nothing is instantiated and no name found.
    pub kernel: &'a str,
    pub arch: Arch,
    pub defines: &'a [String],
    pub include_dirs: &'a [String],
}

/// Machine code with line information.
#[derive(Clone, Debug, PartialEq)]
pub struct Cubin {
    pub bytes: Vec<u8>,
    /// The kernel's mangled name.
    pub name: String,
    /// `NVRTC 13.0`, `nvcc`.
    pub compiler: String,
    /// Warnings.
    pub log: String,
}

/// Compiles one translation unit with NVRTC; the error is the compiler's log.
pub fn nvrtc(request: &Request) -> Result<Cubin, String> {
    let version = library::nvrtc()?;
    let text =
        |what: &str, value: &str| CString::new(value).map_err(|_| format!("the {what} holds a zero byte"));
    let source = text("source", request.source)?;
    let kernel = text("kernel's name", request.kernel)?;
    for option in options(request) {
        text("option", &option)?;
    }
    let program =
        result::create_program(&source, Some(c"cudalint.cu")).map_err(|error| format!("NVRTC: {error}"))?;
    // SAFETY: the program is created above and destroyed once, below; the strings outlive it.
    unsafe {
        let cubin = compile(program, &kernel, &options(request));
        let log = result::get_program_log(program).map(|log| lossy(&log)).unwrap_or_default();
        // A failed clean-up leaks memory of a short-lived process; the answer stands.
        let _ = result::destroy_program(program);
        match cubin {
            Ok((bytes, name)) => {
                Ok(Cubin { bytes, name, compiler: format!("NVRTC {version}"), log: log.trim().to_owned() })
            }
            Err(error) if log.trim().is_empty() => Err(error),
            Err(_) => Err(log.trim().to_owned()),
        }
    }
}

fn options(request: &Request) -> Vec<String> {
    let mut options = vec![
        format!("--gpu-architecture={}", request.arch),
        "-lineinfo".to_owned(),
        "-std=c++17".to_owned(),
        "-default-device".to_owned(),
    ];
    if annotates_lambdas(request.source) {
        options.push("--extended-lambda".to_owned());
    }
    options.extend(request.defines.iter().map(|define| format!("-D{define}")));
    options.extend(request.include_dirs.iter().map(|dir| format!("--include-path={dir}")));
    let cuda = library::include_dirs();
    options.extend(cuda.iter().map(|dir| format!("--include-path={}", dir.display())));
    options
}

/// Whether a lambda says where it runs: `[=] __device__ (int i) { … }`. Other sources are spared an option that an old compiler
/// may not know.
fn annotates_lambdas(source: &str) -> bool {
    source.split(']').skip(1).any(|after| {
        let after = after.trim_start();
        after.starts_with("__device__") || after.starts_with("__host__")
    })
}

/// # Safety
/// `program` must be live.
unsafe fn compile(
    program: sys::nvrtcProgram,
    kernel: &CStr,
    options: &[String],
) -> Result<(Vec<u8>, String), String> {
    let say = |what: &str| {
        let what = what.to_owned();
        move |error: result::NvrtcError| format!("NVRTC: {what}: {error}")
    };
    // SAFETY: the caller's promise; every pointer is to a live local of the size NVRTC asked for.
    unsafe {
        if !kernel.is_empty() {
            sys::nvrtcAddNameExpression(program, kernel.as_ptr()).result().map_err(say("name expression"))?;
        }
        result::compile_program(program, options).map_err(say("compile"))?;
        let mut lowered: *const c_char = c"".as_ptr();
        if !kernel.is_empty() {
            let status = sys::nvrtcGetLoweredName(program, kernel.as_ptr(), &mut lowered);
            status.result().map_err(say("lowered name"))?;
        }
        if lowered.is_null() {
            return Err("NVRTC gave no name for the kernel".to_owned());
        }
        let name = CStr::from_ptr(lowered).to_string_lossy().into_owned();
        let mut size = 0;
        sys::nvrtcGetCUBINSize(program, &mut size).result().map_err(say("CUBIN size"))?;
        let mut bytes = vec![0u8; size];
        sys::nvrtcGetCUBIN(program, bytes.as_mut_ptr().cast()).result().map_err(say("CUBIN"))?;
        Ok((bytes, name))
    }
}

fn lossy(log: &[c_char]) -> String {
    let bytes: Vec<u8> = log.iter().map(|&c| c as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Compiles a file with all its host code by nvcc, where one is installed. `name` is taken from the one entry
/// of the CUBIN whose mangled name holds the kernel's plain name.
pub fn nvcc(request: &Request, folder: &Path) -> Result<Cubin, String> {
    let nvcc = library::nvcc().ok_or("nvcc is not installed")?;
    let source = folder.join("cudalint.cu");
    let output = folder.join("cudalint.cubin");
    // An explicit use makes the wanted template instance exist.
    let text = format!("{}\nvoid* cudalint_kernel_ = (void*)&{};\n", request.source, request.kernel);
    std::fs::write(&source, text).map_err(|error| format!("{}: {error}", source.display()))?;
    let mut command = Command::new(nvcc);
    // As the analysis reads the file: `__CUDACC_EXTENDED_LAMBDA__` and `__CUDACC_RELAXED_CONSTEXPR__` are defined.
    command
        .args(["-cubin", "-lineinfo", "-std=c++17", "--extended-lambda", "--expt-relaxed-constexpr"])
        .arg(format!("-arch={}", request.arch));
    command.args(request.defines.iter().map(|define| format!("-D{define}")));
    command.args(request.include_dirs.iter().map(|dir| format!("-I{dir}")));
    let done = command.arg("-o").arg(&output).arg(&source).output();
    let done = done.map_err(|error| format!("nvcc: {error}"))?;
    if !done.status.success() {
        return Err(String::from_utf8_lossy(&done.stderr).trim().to_owned());
    }
    let bytes = std::fs::read(&output).map_err(|error| format!("{}: {error}", output.display()))?;
    let name = entry(&bytes, request.kernel)?;
    Ok(Cubin { bytes, name, compiler: "nvcc".to_owned(), log: String::new() })
}

/// The one kernel of a CUBIN that `expression` names.
fn entry(cubin: &[u8], expression: &str) -> Result<String, String> {
    let plain = expression.split('<').next().unwrap_or_default().trim();
    let plain = plain.rsplit("::").next().unwrap_or_default();
    let part = format!("{}{plain}", plain.len());
    let names = super::sass::functions(cubin);
    let fits: Vec<&String> = names.iter().filter(|name| *name == plain || name.contains(&part)).collect();
    match fits.as_slice() {
        [one] => Ok((*one).clone()),
        [] => Err(format!("nvcc's output has no kernel `{plain}`")),
        _ => Err(format!("nvcc's output has several instances of `{plain}`")),
    }
}
