//! Which parts of CUDA are there, found without calling them.
//!
//! cudarc loads libraries when first called and panics where one is missing, so nothing in this folder calls it
//! before [`availability`] or [`nvrtc`] said yes. Libraries outside the linker's path (a toolkit, a PyPI wheel in
//! site-packages) are opened by absolute path with global symbols; cudarc then finds them by their soname.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cudarc::{cupti, driver, nvrtc};

/// What `cudalint verify` needs, each with what is missing where it is.
#[derive(Clone, Debug, PartialEq)]
pub struct Availability {
    /// The driver's library, libcuda.
    pub driver: Result<(), String>,
    /// The first device.
    pub device: Result<Found, String>,
    /// The runtime compiler: its version.
    pub nvrtc: Result<String, String>,
    /// The profiling interface; without it addresses are recorded instead.
    pub cupti: Result<(), String>,
}

/// A device and what it can do, as far as that is known without a context.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    pub name: String,
    /// Compute capability times ten.
    pub arch: u32,
    pub l2_bytes: u64,
    /// Most bytes of L2 that may be set aside for persisting lines.
    pub persisting_bytes: u64,
    /// Most bytes of an access-policy window.
    pub window_bytes: u64,
}

impl Availability {
    /// Whether kernels can be compiled and run; CUPTI is not needed for that.
    pub fn can_run(&self) -> bool {
        self.driver.is_ok() && self.device.is_ok() && self.can_compile()
    }

    /// Whether kernels can be compiled, for any device.
    pub fn can_compile(&self) -> bool {
        self.nvrtc.is_ok() || nvcc().is_some()
    }
}

impl fmt::Display for Availability {
    /// A line per part.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let say = |result: &Result<String, String>| match result {
            Ok(what) => what.clone(),
            Err(why) => format!("missing: {why}"),
        };
        let there = |result: &Result<(), String>| say(&result.clone().map(|()| "found".to_owned()));
        writeln!(f, "driver: {}", there(&self.driver))?;
        let device = |found: Found| format!("{} (sm_{})", found.name, found.arch);
        writeln!(f, "device: {}", say(&self.device.clone().map(device)))?;
        writeln!(f, "NVRTC:  {}", say(&self.nvrtc))?;
        write!(f, "CUPTI:  {}", there(&self.cupti))
    }
}

/// Looks for driver, device, NVRTC and CUPTI. Never panics, whatever is missing.
pub fn availability() -> Availability {
    let driver = driver();
    let device = driver.clone().and_then(|()| first_device());
    Availability { driver, device, nvrtc: nvrtc(), cupti: cupti() }
}

/// Whether libcuda can be loaded.
pub fn driver() -> Result<(), String> {
    // SAFETY: only tries to open the library.
    if unsafe { driver::sys::is_culib_present() } {
        Ok(())
    } else {
        Err("libcuda.so.1 is not found; it comes with the NVIDIA driver".to_owned())
    }
}

/// Device 0; needs [`driver`] to have said yes.
fn first_device() -> Result<Found, String> {
    use driver::sys::CUdevice_attribute as A;
    driver::result::init().map_err(|error| format!("the driver does not start: {error:?}"))?;
    match driver::result::device::get_count() {
        Ok(count) if count > 0 => {}
        Ok(_) => return Err("no CUDA device is visible".to_owned()),
        Err(error) => return Err(format!("no CUDA device: {error:?}")),
    }
    let device = driver::result::device::get(0).map_err(|error| format!("device 0: {error:?}"))?;
    let name = driver::result::device::get_name(device).map_err(|error| format!("device 0: {error:?}"))?;
    let attribute = |which| {
        // SAFETY: the device was just got.
        unsafe { driver::result::device::get_attribute(device, which) }.unwrap_or(0).max(0) as u32
    };
    Ok(Found {
        name,
        arch: attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) * 10
            + attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR),
        l2_bytes: u64::from(attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)),
        persisting_bytes: u64::from(attribute(A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE)),
        window_bytes: u64::from(attribute(A::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE)),
    })
}

/// Makes NVRTC loadable and tells its version. Looks at the linker's path, then at the folders of [`folders`].
pub fn nvrtc() -> Result<String, String> {
    static FOUND: OnceLock<Result<String, String>> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            // A folder that was named wins over the linker's path.
            let named = std::env::var_os("CUDALINT_NVRTC").is_some();
            if named || !nvrtc_present() {
                folders().iter().any(|folder| preload(folder, &["libnvrtc-builtins.so", "libnvrtc.so"]));
            }
            if !nvrtc_present() {
                return Err("libnvrtc is not found: install the CUDA toolkit or the PyPI package \
                            `nvidia-cuda-nvrtc`, or name its folder in CUDALINT_NVRTC"
                    .to_owned());
            }
            let (mut major, mut minor) = (0, 0);
            // SAFETY: the library is present; both pointers are valid.
            let status = unsafe { nvrtc::sys::nvrtcVersion(&mut major, &mut minor) };
            status.result().map_err(|error| format!("NVRTC does not answer: {error}"))?;
            Ok(format!("{major}.{minor}"))
        })
        .clone()
}

/// The architectures that NVRTC compiles for, as compute capabilities times ten; empty where it does not tell.
pub fn nvrtc_architectures() -> Vec<u32> {
    if nvrtc().is_err() {
        return Vec::new();
    }
    let mut count = 0;
    // SAFETY: the library is present; the list has the length that NVRTC asked for.
    let mut list = unsafe {
        if nvrtc::sys::nvrtcGetNumSupportedArchs(&mut count).result().is_err() {
            return Vec::new();
        }
        let mut list = vec![0; usize::try_from(count).unwrap_or(0)];
        if nvrtc::sys::nvrtcGetSupportedArchs(list.as_mut_ptr()).result().is_err() {
            return Vec::new();
        }
        list
    };
    list.sort_unstable();
    list.into_iter().filter_map(|arch| u32::try_from(arch).ok()).collect()
}

fn nvrtc_present() -> bool {
    // SAFETY: only tries to open the library.
    unsafe { nvrtc::sys::is_culib_present() }
}

/// Makes CUPTI loadable.
pub fn cupti() -> Result<(), String> {
    static FOUND: OnceLock<Result<(), String>> = OnceLock::new();
    FOUND
        .get_or_init(|| {
            // SAFETY: only tries to open the library.
            let present = || unsafe { cupti::sys::is_culib_present() };
            if !present() {
                folders().iter().any(|folder| preload(folder, &["libcupti.so"]));
            }
            if present() {
                Ok(())
            } else {
                Err("libcupti is not found; it comes with the CUDA toolkit or the PyPI package \
                     `nvidia-cuda-cupti`; addresses are recorded instead"
                    .to_owned())
            }
        })
        .clone()
}

/// Folders that may hold CUDA's libraries: `CUDALINT_NVRTC`, toolkits, NVIDIA's wheels in site-packages.
fn folders() -> Vec<PathBuf> {
    let mut folders = Vec::new();
    let mut roots = Vec::new();
    if let Some(named) = std::env::var_os("CUDALINT_NVRTC") {
        roots.push(PathBuf::from(named));
    }
    roots.extend(["CUDA_PATH", "CUDA_HOME"].iter().filter_map(std::env::var_os).map(PathBuf::from));
    roots.push(PathBuf::from("/usr/local/cuda"));
    roots.extend(site_packages());
    for root in roots {
        folders.push(root.clone());
        let inside = ["lib", "lib64", "targets/x86_64-linux/lib", "extras/CUPTI/lib64", "nvidia/cu13/lib"];
        folders.extend(inside.iter().map(|inside| root.join(inside)));
        let wheels = ["nvidia/cuda_nvrtc/lib", "nvidia/cuda_cupti/lib"];
        folders.extend(wheels.iter().map(|inside| root.join(inside)));
    }
    folders.retain(|folder| folder.is_dir());
    folders
}

/// Site-packages of the active virtual environment and of the Pythons in the usual places, by path.
fn site_packages() -> Vec<PathBuf> {
    let mut prefixes: Vec<PathBuf> = Vec::new();
    prefixes.extend(std::env::var_os("VIRTUAL_ENV").map(PathBuf::from));
    prefixes.extend(std::env::var_os("CONDA_PREFIX").map(PathBuf::from));
    if let Some(home) = std::env::var_os("HOME") {
        prefixes.push(Path::new(&home).join(".local"));
        prefixes.extend(sorted_children(&Path::new(&home).join(".pyenv/versions")));
    }
    prefixes.push(PathBuf::from("/usr/local"));
    prefixes.push(PathBuf::from("/usr"));
    let mut found = Vec::new();
    for prefix in prefixes {
        for python in sorted_children(&prefix.join("lib")) {
            for name in ["site-packages", "dist-packages"] {
                let folder = python.join(name);
                if folder.join("nvidia").is_dir() {
                    found.push(folder);
                }
            }
        }
    }
    found
}

fn sorted_children(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut children: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    children.sort();
    children
}

/// Opens the first file of `folder` for each prefix, with global symbols, and leaves it open. True when all opened.
#[cfg(unix)]
fn preload(folder: &Path, prefixes: &[&str]) -> bool {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    prefixes.iter().all(|prefix| {
        let named = |path: &PathBuf| {
            path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(prefix))
        };
        sorted_children(folder).iter().filter(|path| named(path)).any(|path| {
            // SAFETY: running the initialisers of NVIDIA's libraries is what loading CUDA means.
            match unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) } {
                Ok(library) => {
                    std::mem::forget(library);
                    true
                }
                Err(_) => false,
            }
        })
    })
}

#[cfg(not(unix))]
fn preload(_folder: &Path, _prefixes: &[&str]) -> bool {
    false
}

/// CUDA's header folders, for `cuda_fp16.h`, `cooperative_groups.h`, `cuda/std/…`: beside the libraries.
pub fn include_dirs() -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for folder in folders() {
        for up in [folder.join("include"), folder.join("../include"), folder.join("../../include")] {
            let Ok(include) = up.canonicalize() else { continue };
            if include.join("cuda_fp16.h").is_file() && !dirs.contains(&include) {
                let cccl = [include.join("cccl"), include.join("../cccl")];
                dirs.push(include);
                dirs.extend(cccl.iter().filter_map(|dir| dir.canonicalize().ok()));
                return dirs;
            }
        }
    }
    dirs
}

/// `nvcc` on the search path or in a toolkit.
pub fn nvcc() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(
        ["CUDA_PATH", "CUDA_HOME"].iter().filter_map(std::env::var_os).map(|p| PathBuf::from(p).join("bin")),
    );
    folders.push(PathBuf::from("/usr/local/cuda/bin"));
    folders.into_iter().map(|folder| folder.join("nvcc")).find(|nvcc| nvcc.is_file())
}
