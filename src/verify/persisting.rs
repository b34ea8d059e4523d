//! What does an access-policy window leave behind for the kernels after it?
//!
//! The demonstration of `persisting-l2-not-reset`, with kernels of its own and none of the project's host code. The set-aside
//! and the window are made as the source makes them; a kernel reads the window, whose lines persist; another then reads a
//! working set of three quarters of the L2 again and again, which fits the L2 where all of it may be used. Its first launch is
//! timed beside the persisting lines, and where `cudaCtxResetPersistingL2Cache()` and a limit of 0 came between. What went
//! before is the same both times, from what flushes the L2 to the window. Measured on an H200: 0.56 ms beside 37 MiB left
//! persisting, 0.28 ms after the reset; further launches are as fast as after it, the lines give way in the first.

use cudarc::driver::{result, sys};

use super::child::step;
use super::compile::{self, Cubin, Request};
use super::device::{self, Gpu};
use super::job::{Arch, Arg, Fill, FixRun, Launch, Run, Timing, Window};

const SOURCE: &str = r#"
extern "C" __global__ void cl_stream(const float4* p, unsigned long long n, float* out) {
  float s = 0;
  for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    float4 v = p[i];
    s += v.x + v.y + v.z + v.w;
  }
  if (s == -1.0f) *out = s;
}
extern "C" __global__ void cl_follow(const float4* p, unsigned long long n, int passes, float* out) {
  float s = 0;
  for (int pass = 0; pass < passes; ++pass)
    for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
      float4 v = __ldcg(p + i);
      s += v.x + v.y + v.z + v.w;
    }
  if (s == -1.0f) *out = s;
}
"#;

/// Times that the following kernel reads its working set.
const PASSES: i32 = 50;
/// Launches of the reading kernel, so that all lines of the window are in L2 as persisting ones.
const READS: usize = 10;
/// What is read before the window, in multiples of the L2: lines that are there already would not be fetched as persisting ones.
const FLUSH: u64 = 4;
/// First launches behind each median.
const TIMED: usize = 5;
/// Blocks of either kernel per multiprocessor, of 256 threads.
const BLOCKS: u32 = 8;

/// Bytes that the following kernel reads, on a device with `l2_bytes` of L2.
pub fn working_set(l2_bytes: u64) -> u64 {
    (l2_bytes / 4 * 3) & !0xffff
}

/// Fills `run` with the time of the following kernel beside the persisting lines and, as a fix, after the reset. Where both are
/// equal, the largest window that the device allows is the control: if it costs nothing either, no line persists here.
pub(super) fn demonstrate(window: Window, gpu: &Gpu, arch: Arch, run: &mut Run) -> Result<(), String> {
    let most = gpu.info.persisting_bytes;
    if most == 0 {
        return Err("this device has no persisting L2 lines".to_owned());
    }
    step("compiling");
    let compiled = |kernel| {
        let request = Request { source: SOURCE, kernel, arch, defines: &[], include_dirs: &[] };
        compile::nvrtc(&request).map_err(|log| format!("the demonstration does not compile: {log}"))
    };
    let cubins = [compiled("cl_stream")?, compiled("cl_follow")?];
    run.compiler = Some(cubins[0].compiler.clone());
    let (before_ms, after_ms) = times(window, gpu, &cubins)?;
    if !is_slower(before_ms, after_ms) {
        let control = Window { bytes: most, hit_ratio: 1.0, set_aside: most };
        let (before, after) = times(control, gpu, &cubins)?;
        if !is_slower(before, after) {
            return Err(format!(
                "no line persists on this device as it is set up: even {} MiB cost the following kernel nothing \
                 ({before:.3} ms, {after:.3} ms after the reset)",
                most >> 20
            ));
        }
    }
    let reset = FixRun {
        title: "call `cudaCtxResetPersistingL2Cache()`".to_owned(),
        after_ms: Some(after_ms),
        ..FixRun::default()
    };
    run.timing = Some(Timing { before_ms, launches: TIMED as u32, input_sets: 1, fixes: vec![reset] });
    Ok(())
}

/// Whether a kernel took more than 2 % longer beside persisting lines than after the reset.
pub(super) fn is_slower(before_ms: f64, after_ms: f64) -> bool {
    after_ms < before_ms * 0.98
}

/// Median milliseconds of the following kernel's first launch beside the lines that a window leaves behind, and after the reset.
fn times(window: Window, gpu: &Gpu, [stream, follow]: &[Cubin; 2]) -> Result<(f64, f64), String> {
    use sys::CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE as SET_ASIDE;
    step("making inputs");
    let blocks = gpu.info.multiprocessors.max(1) * BLOCKS;
    let launch = Launch { grid: [blocks, 1, 1], block: [256, 1, 1], shared_bytes: 0 };
    let floats = |bytes| Arg::buffer(bytes, Fill::Float { element_bytes: 4 });
    let reading = |bytes: u64| [floats(bytes), Arg::i64((bytes / 16) as i64), floats(4)];
    let set = working_set(gpu.info.l2_bytes);
    let (read, flush) = (reading(window.bytes), reading(FLUSH * gpu.info.l2_bytes));
    let again = [floats(set), Arg::i64((set / 16) as i64), Arg::i32(PASSES), floats(4)];
    let stream = gpu.load(&stream.bytes, &stream.name, launch, &read)?;
    let follow = gpu.load(&follow.bytes, &follow.name, launch, &again)?;
    let (read, flush) = (gpu.plain_inputs(&read)?, gpu.plain_inputs(&flush)?);
    let again = gpu.plain_inputs(&again)?;

    let limit = |bytes: u64| {
        // SAFETY: the context is current.
        unsafe { sys::cuCtxSetLimit(SET_ASIDE, bytes as usize) }.result().map_err(device::explain)
    };
    let on = result::stream::create(result::stream::StreamKind::NonBlocking).map_err(device::explain)?;
    let after = |resets: bool| -> Result<f64, String> {
        step("reading the window");
        limit(window.set_aside).map_err(|why| format!("a set-aside of {} B: {why}", window.set_aside))?;
        policy(on, read.address(0), window)?;
        stream.launch(&flush)?;
        gpu.wait()?;
        for _ in 0..READS {
            stream.launch_on(on, &read)?;
        }
        gpu.wait()?;
        // Only what the window left behind is to be shown, not the window.
        policy(on, read.address(0), Window { bytes: 0, ..window })?;
        if resets {
            reset()?;
            limit(0)?;
        }
        step("timing the kernel after it");
        let times = follow.time(gpu, &[&again], 1)?;
        reset()?;
        Ok(times.first().copied().unwrap_or(0.0))
    };
    // The first launch of all also loads the kernel.
    after(true)?;
    let (mut beside, mut freed) = (Vec::new(), Vec::new());
    for _ in 0..TIMED {
        beside.push(after(false)?);
        freed.push(after(true)?);
    }
    let median = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(0.0)
    };
    Ok((median(beside), median(freed)))
}

fn reset() -> Result<(), String> {
    // SAFETY: the context is current.
    unsafe { sys::cuCtxResetPersistingL2Cache() }.result().map_err(device::explain)
}

/// Sets a stream's window, whose hits persist and whose misses stream.
fn policy(stream: sys::CUstream, base: sys::CUdeviceptr, window: Window) -> Result<(), String> {
    use sys::CUlaunchAttributeID_enum::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW as WINDOW;
    // SAFETY: a plain C union, for which zero is a valid value; the stream lives.
    unsafe {
        let mut value: sys::CUstreamAttrValue = std::mem::zeroed();
        value.accessPolicyWindow = sys::CUaccessPolicyWindow {
            base_ptr: base as *mut std::ffi::c_void,
            num_bytes: window.bytes as usize,
            hitRatio: window.hit_ratio as f32,
            hitProp: sys::CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING,
            missProp: sys::CUaccessProperty::CU_ACCESS_PROPERTY_STREAMING,
        };
        let status = sys::cuStreamSetAttribute(stream, WINDOW, &value).result();
        status.map_err(|error| format!("a window of {} B: {}", window.bytes, device::explain(error)))
    }
}
