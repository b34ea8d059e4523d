//! What verify is asked and what it answers: plain data, serializable, without CUDA types.
//!
//! A [`Job`] is one kernel instance with one launch; its [`Prediction`]s are confronted with a [`Run`], what a
//! device did. Both travel as JSON between `cudalint verify` and the child process that touches the device, so
//! a recorded run can be replayed by tests without a device.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One kernel instance, launched once, with the accesses to confirm.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Job {
    /// A C++ name expression valid at the end of `source`: `k`, `ns::k<float, 16>`.
    pub kernel: String,
    /// One NVRTC translation unit with `#line` directives back to the project's files.
    pub source: String,
    /// The file as it lies on disk, for nvcc where NVRTC refuses `source`.
    pub whole_file: Option<String>,
    pub launch: Launch,
    /// In the order of the kernel's parameters.
    pub args: Vec<Arg>,
    /// Their names.
    pub params: Vec<String>,
    /// Template arguments that no launch gives: `BM = 4`.
    pub made_up: Vec<String>,
    pub predictions: Vec<Prediction>,
    /// What is predicted for the kernel's other accesses, which may share a line or an instruction with those.
    pub others: Vec<Prediction>,
    /// Proposed fixes: each is compiled, compared and timed beside `source` on its own.
    pub fixes: Vec<Fixed>,
    /// `-D` values, `NAME` or `NAME=VALUE`.
    pub defines: Vec<String>,
    /// Directories for `#include`.
    pub include_dirs: Vec<String>,
    /// Record addresses even where CUPTI is there.
    pub record: bool,
    /// The architecture to compile for; the device's own where `None`.
    pub arch: Option<Arch>,
    /// Tell which of the predictions' accesses leave the buffers, and measure nothing.
    pub trace: bool,
    /// Compile, and run nothing: needs no device where `arch` is given.
    pub compile_only: bool,
    /// Do not measure a kernel that takes long for it: smaller sizes are to be tried first.
    pub hasty: bool,
    /// Seconds that the child may take; fixes are not begun in the second half. 0: no limit.
    pub seconds: f64,
    /// Instead of a kernel, what an access-policy window leaves behind is shown; all but `arch` above is without meaning.
    pub window: Option<Window>,
}

/// The source with one fix applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Fixed {
    /// What the fix does: `pad the rows of 'tile'`.
    pub title: String,
    /// The rule that proposes it.
    pub rule: String,
    /// The predictions whose findings propose it.
    pub ids: Vec<u64>,
    pub source: String,
    /// The fixed file for nvcc; `None` where the fix reaches into other files.
    pub whole_file: Option<String>,
    /// Count its global requests too: the fix is to save some.
    pub count_requests: bool,
}

/// An L2 access-policy window as host code sets it, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Window {
    /// `accessPolicyWindow.num_bytes`
    pub bytes: u64,
    /// `accessPolicyWindow.hitRatio`: the share of the window whose lines persist.
    pub hit_ratio: f64,
    /// `cudaLimitPersistingL2CacheSize`
    pub set_aside: u64,
}

/// An architecture of a GPU: `sm_90`, `sm_90a`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Arch {
    /// Compute capability times ten.
    pub number: u32,
    /// `a`: that device alone; `f`: its family.
    pub suffix: Option<char>,
}

impl Arch {
    /// Whether a device of compute capability `device` (times ten) runs machine code for this architecture: one of the same
    /// major capability and no lower minor one does; code for `sm_90a` needs exactly that.
    ///
    /// CUDA C++ Programming Guide, "Binary Compatibility".
    pub fn runs_on(self, device: u32) -> bool {
        match self.suffix {
            Some('a') => device == self.number,
            _ => device / 10 == self.number / 10 && device >= self.number,
        }
    }
}

impl From<u32> for Arch {
    fn from(number: u32) -> Arch {
        Arch { number, suffix: None }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sm_{}", self.number)?;
        self.suffix.map_or(Ok(()), |suffix| write!(f, "{suffix}"))
    }
}

impl std::str::FromStr for Arch {
    type Err = String;

    fn from_str(text: &str) -> Result<Arch, String> {
        let digits = text.strip_prefix("sm_").unwrap_or_default();
        let (digits, suffix) = match digits.strip_suffix(['a', 'f']) {
            Some(digits) => (digits, text.chars().next_back()),
            None => (digits, None),
        };
        match digits.parse() {
            Ok(number @ 30..=999) => Ok(Arch { number, suffix }),
            _ => Err(format!("`{text}` is no architecture such as `sm_90`")),
        }
    }
}

impl TryFrom<String> for Arch {
    type Error = String;

    fn try_from(text: String) -> Result<Arch, String> {
        text.parse()
    }
}

impl From<Arch> for String {
    fn from(arch: Arch) -> String {
        arch.to_string()
    }
}

/// Extents of a launch and its dynamic shared memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Launch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared_bytes: u32,
}

impl Default for Launch {
    fn default() -> Self {
        Launch { grid: [1; 3], block: [1; 3], shared_bytes: 0 }
    }
}

/// One kernel argument.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Arg {
    /// The value's bytes, little-endian, as long as the parameter.
    Scalar { bytes: Vec<u8> },
    /// A pointer to device memory made for it.
    Buffer(Buffer),
    /// A by-value struct: its bytes, with pointers to buffers written at the given byte offsets.
    Struct { bytes: Vec<u8>, pointers: Vec<(usize, Buffer)> },
}

impl Arg {
    pub fn i32(value: i32) -> Arg {
        Arg::Scalar { bytes: value.to_le_bytes().to_vec() }
    }

    pub fn i64(value: i64) -> Arg {
        Arg::Scalar { bytes: value.to_le_bytes().to_vec() }
    }

    pub fn f32(value: f32) -> Arg {
        Arg::Scalar { bytes: value.to_le_bytes().to_vec() }
    }

    pub fn buffer(bytes: u64, fill: Fill) -> Arg {
        Arg::Buffer(Buffer { bytes, fill, pointers: Vec::new() })
    }

    /// The same argument with zero in place of made-up integers in its buffers; equal where there are none.
    pub fn zeroed(&self) -> Arg {
        match self {
            Arg::Scalar { .. } => self.clone(),
            Arg::Buffer(buffer) => Arg::Buffer(buffer.zeroed()),
            Arg::Struct { bytes, pointers } => {
                let pointers = pointers.iter().map(|(at, buffer)| (*at, buffer.zeroed())).collect();
                Arg::Struct { bytes: bytes.clone(), pointers }
            }
        }
    }

    /// The same argument with its own buffer `times` as long.
    pub fn grown(&self, times: u64) -> Arg {
        let grown = |buffer: &Buffer| Buffer { bytes: buffer.bytes.saturating_mul(times), ..buffer.clone() };
        match self {
            Arg::Buffer(buffer) if buffer.pointers.is_empty() => Arg::Buffer(grown(buffer)),
            Arg::Scalar { .. } | Arg::Buffer(_) => self.clone(),
            Arg::Struct { bytes, pointers } => {
                let pointers = pointers.iter().map(|(at, buffer)| (*at, grown(buffer))).collect();
                Arg::Struct { bytes: bytes.clone(), pointers }
            }
        }
    }

    /// How often the buffers of `args` fit into the memory that a job may take, up to `most`.
    pub fn room(args: &[Arg], most: u64) -> u64 {
        let bytes: u64 = args.iter().flat_map(Arg::buffers).map(|buffer| buffer.bytes).sum();
        MOST_BYTES.checked_div(bytes).unwrap_or(1).min(most)
    }

    /// Every buffer of this argument, nested ones after the one that points to them.
    pub fn buffers(&self) -> Vec<&Buffer> {
        match self {
            Arg::Scalar { .. } => Vec::new(),
            Arg::Buffer(buffer) => buffer.all(),
            Arg::Struct { pointers, .. } => pointers.iter().flat_map(|(_, buffer)| buffer.all()).collect(),
        }
    }
}

/// Device memory of `bytes` bytes, 256-byte aligned as by `cudaMalloc`, between guard zones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Buffer {
    pub bytes: u64,
    pub fill: Fill,
    /// Pointers stored in the buffer (`float**` rows) at byte offsets; they overwrite the fill.
    pub pointers: Vec<(usize, Buffer)>,
}

impl Buffer {
    fn zeroed(&self) -> Buffer {
        let fill = match &self.fill {
            Fill::Index { .. } | Fill::Ramp { .. } | Fill::Bytes(_) => Fill::Zero,
            Fill::Zero | Fill::Float { .. } => self.fill.clone(),
        };
        let pointers = self.pointers.iter().map(|(at, buffer)| (*at, buffer.zeroed())).collect();
        Buffer { bytes: self.bytes, fill, pointers }
    }

    fn all(&self) -> Vec<&Buffer> {
        std::iter::once(self).chain(self.pointers.iter().flat_map(|(_, buffer)| buffer.all())).collect()
    }
}

/// What a buffer holds before the launch. Every fill is a fixed function of the byte offset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fill {
    /// All bytes zero.
    #[default]
    Zero,
    /// Pseudo-random integers of `element_bytes` (1, 2, 4, 8) in `0..limit`: index arrays.
    Index { element_bytes: u8, limit: u64 },
    /// `0, 1, 2, …` modulo `limit`, in integers of `element_bytes`: sorted or identity index arrays.
    Ramp { element_bytes: u8, limit: u64 },
    /// Finite floats in `[0.5, 1.5)` of `element_bytes` (2: half, 4: float, 8: double).
    Float { element_bytes: u8 },
    /// These bytes, repeated.
    Bytes(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Space {
    Global,
    Shared,
    Local,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    Load,
    Store,
    Atomic,
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Direction::Load => "load",
            Direction::Store => "store",
            Direction::Atomic => "atomic",
        })
    }
}

/// What the analysis says of one access: averages per executed request of a warp.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Prediction {
    /// The caller's name for it; comes back in [`Verification::id`].
    pub id: u64,
    /// As the `#line` directives of the source spell it.
    pub file: String,
    /// 1-based.
    pub line: u32,
    pub end_line: u32,
    /// 1-based byte column of `expression` on `line`; with it the address recorder can be used.
    #[serde(default)]
    pub column: Option<u32>,
    /// The accessed lvalue as written: `in[i * 32]`.
    #[serde(default)]
    pub expression: Option<String>,
    pub space: Space,
    pub operation: Direction,
    pub access_bytes: u32,
    pub sectors: Option<f64>,
    pub ideal_sectors: Option<f64>,
    pub wavefronts: Option<f64>,
    pub ideal_wavefronts: Option<f64>,
    /// The fewest and the most that the profiler's value per instruction may say, where that is not `wavefronts`.
    #[serde(default)]
    pub profiled: Option<[f64; 2]>,
    /// What the numbers assume about values that this job makes up; `None` where they hold for all of them.
    #[serde(default)]
    pub assumed: Option<String>,
    /// The same for the very launch that is run, where the analysis was asked.
    #[serde(default)]
    pub here: Option<Here>,
    /// Lines of accesses to the same address in the same direction, of which the compiler may make one with this.
    #[serde(default)]
    pub twins: Vec<u32>,
    /// Lines of the other parts of a wide instruction that the compiler makes, or may make, of this access and its neighbours.
    #[serde(default)]
    pub merged_with: Vec<u32>,
    /// A load of the same address in every iteration of its innermost loop, which may be done before it.
    #[serde(default)]
    pub is_invariant: bool,
    /// An earlier load got the same.
    #[serde(default)]
    pub is_repeated: bool,
    /// Data decide whether it is executed.
    #[serde(default)]
    pub by_data: bool,
    /// File and line of each call that leads to it, outermost first: what is inlined may carry the line of its call.
    #[serde(default)]
    pub calls: Vec<(String, u32)>,
}

/// What the analysis says of an access in one launch with all its numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Here {
    /// Sectors, for shared memory wavefronts, per request.
    pub units: f64,
    pub ideal: f64,
    /// As in [`Prediction::profiled`].
    #[serde(default)]
    pub profiled: Option<[f64; 2]>,
    /// As in [`Prediction::assumed`].
    pub assumed: Option<String>,
}

impl Prediction {
    /// This prediction for the launch that is run.
    pub fn exactly(&self, here: &Here) -> Prediction {
        let shared = self.space == Space::Shared;
        let (units, ideal) = (Some(here.units), Some(here.ideal));
        Prediction {
            sectors: units.filter(|_| !shared),
            ideal_sectors: ideal.filter(|_| !shared),
            wavefronts: units.filter(|_| shared),
            ideal_wavefronts: ideal.filter(|_| shared),
            profiled: here.profiled,
            assumed: here.assumed.clone(),
            here: None,
            ..self.clone()
        }
    }

    /// The number that is compared: sectors, or wavefronts where the access is to shared memory.
    pub fn value(&self) -> Option<f64> {
        match self.space {
            Space::Shared => self.wavefronts,
            Space::Global | Space::Local => self.sectors,
        }
    }

    pub fn ideal(&self) -> Option<f64> {
        match self.space {
            Space::Shared => self.ideal_wavefronts,
            Space::Global | Space::Local => self.ideal_sectors,
        }
    }
}

/// The device that ran a job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Device {
    pub name: String,
    /// Compute capability times ten: 90 for `sm_90`.
    pub arch: u32,
    /// As `cuDriverGetVersion`: 13000 for CUDA 13.0.
    pub driver: u32,
    pub l2_bytes: u64,
    /// Most bytes of L2 that may be set aside for persisting lines (`persistingL2CacheMaxSize`).
    pub persisting_bytes: u64,
    /// Most bytes of an access-policy window (`accessPolicyMaxWindowSize`).
    pub window_bytes: u64,
    pub multiprocessors: u32,
}

/// No job gets more device memory than this: inputs of real kernels are made small enough to fit.
pub const MOST_BYTES: u64 = 8 << 30;
/// Begins the failure of a kernel that was still running when its time was over.
pub const DOES_NOT_END: &str = "the kernel does not end";

/// Begins the failure of a kernel whose measurement would take too long.
pub const TOO_SLOW: &str = "the kernel takes too long to be measured";

/// Begins the failure of a child that was still busy when its time was over.
pub const STOPPED: &str = "stopped after";

/// What one instruction or one source access was measured to do, summed over all its executions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Measured {
    pub file: String,
    pub line: u32,
    pub space: Option<Space>,
    pub operation: Option<Direction>,
    /// Bytes per lane; 0 where the opcode does not tell.
    pub access_bytes: u32,
    /// The opcode, `LDG.64`; `source` where the recorder saw the access.
    pub opcode: String,
    /// Times a warp executed it.
    pub requests: u64,
    /// Lanes that took part, over all requests.
    pub active: u64,
    pub sectors: u64,
    pub ideal_sectors: u64,
    pub wavefronts: u64,
    pub ideal_wavefronts: u64,
}

impl Measured {
    /// Sectors (shared: wavefronts) per executed request.
    pub fn value(&self) -> f64 {
        self.per_request(self.total())
    }

    /// Their ideal per executed request.
    pub fn ideal(&self) -> f64 {
        self.per_request(self.total_ideal())
    }

    pub fn total(&self) -> u64 {
        if self.space == Some(Space::Shared) { self.wavefronts } else { self.sectors }
    }

    pub fn total_ideal(&self) -> u64 {
        if self.space == Some(Space::Shared) { self.ideal_wavefronts } else { self.ideal_sectors }
    }

    fn per_request(&self, total: u64) -> f64 {
        if self.requests == 0 { 0.0 } else { total as f64 / self.requests as f64 }
    }
}

/// How the accesses were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// CUPTI's per-instruction counters.
    SassMetrics,
    /// Addresses recorded by an instrumented kernel.
    Recorder,
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::SassMetrics => "CUPTI counters",
            Method::Recorder => "recorded addresses",
        })
    }
}

/// Time of the kernel as it is and with each fix: medians in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Timing {
    pub before_ms: f64,
    /// Launches behind each median, and distinct input sets they rotated over.
    pub launches: u32,
    pub input_sets: u32,
    /// One for each of [`Job::fixes`], in their order.
    pub fixes: Vec<FixRun>,
}

/// What became of one fix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FixRun {
    pub title: String,
    pub rule: String,
    pub after_ms: Option<f64>,
    /// Whether all buffers were bitwise equal after one run of each on the same inputs.
    pub outputs_equal: Option<bool>,
    /// Requests to global memory in one launch with the fix, where they were asked for.
    pub global_requests: Option<u64>,
    /// Why there is no time, or why outputs were not compared.
    pub note: Option<String>,
}

impl fmt::Display for FixRun {
    /// `0.46 ms, outputs equal`, without the time before.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(after) = self.after_ms {
            let equal = match self.outputs_equal {
                Some(true) => "outputs equal",
                Some(false) => "OUTPUTS DIFFER",
                None => "outputs not compared",
            };
            write!(f, "{after:.3} ms, {equal}")?;
        }
        match &self.note {
            Some(note) if self.after_ms.is_some() => write!(f, ": {note}"),
            Some(note) => write!(f, "not timed: {note}"),
            None => Ok(()),
        }
    }
}

/// What the child process found out about one job. Everything it could not do is in `notes` or `failure`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Run {
    pub device: Option<Device>,
    /// `NVRTC 13.0`, `nvcc`.
    pub compiler: Option<String>,
    pub method: Option<Method>,
    pub measured: Vec<Measured>,
    pub timing: Option<Timing>,
    /// Accesses outside a buffer: `argument 1: 16 B were written after its end`.
    pub out_of_range: Vec<String>,
    /// What did not work but did not stop the run.
    pub notes: Vec<String>,
    /// Why nothing was measured.
    pub failure: Option<String>,
    /// Seconds from the child's start to its answer.
    pub seconds: f64,
}

impl Run {
    /// Whether an access outside the buffers ended or spoilt the run.
    pub fn left_its_buffers(&self) -> bool {
        // The second is an address beyond the block's shared memory (measured on an H200).
        let fault = |why: &String| why.contains("ILLEGAL_ADDRESS") || why.contains("ILLEGAL_INSTRUCTION");
        !self.out_of_range.is_empty() || self.failure.as_ref().is_some_and(fault)
    }

    /// Whether the kernel was still running when its time was over.
    pub fn did_not_end(&self) -> bool {
        self.failure.as_ref().is_some_and(|why| why.starts_with(DOES_NOT_END))
    }

    /// Whether nothing but the time limit kept it from being measured.
    pub fn took_too_long(&self) -> bool {
        let was_running = |why: &String| why.starts_with(STOPPED) && !why.contains("compiling");
        let is_slow = |why: &String| why.starts_with(TOO_SLOW);
        self.did_not_end() || self.failure.as_ref().is_some_and(|why| was_running(why) || is_slow(why))
    }

    /// Requests to global memory in one launch, where they were counted.
    pub fn global_requests(&self) -> Option<u64> {
        (self.method == Some(Method::SassMetrics)).then(|| global_requests(&self.measured))
    }
}

/// Requests to global memory among what was measured.
pub fn global_requests(measured: &[Measured]) -> u64 {
    measured.iter().filter(|m| m.space == Some(Space::Global)).map(|m| m.requests).sum()
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Confirmed,
    Refuted,
    #[default]
    NotRun,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Confirmed => "confirmed",
            Status::Refuted => "refuted",
            Status::NotRun => "not run",
        })
    }
}

/// The verdict on one prediction: the object under `properties.verification` in SARIF and `verification` in JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    pub id: u64,
    pub status: Status,
    /// Why it was not run, or how like was compared with like where that was not one instruction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted: Option<f64>,
    /// Per executed request; sectors, for shared memory wavefronts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_sectors: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_ideal_sectors: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_wavefronts: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_ideal_wavefronts: Option<f64>,
    /// The instruction compared with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opcode: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<Method>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milliseconds_before: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub milliseconds_after: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs_equal: Option<bool>,
    /// Requests to global memory of one launch before and after the fix, where the fix is to save some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_requests_before: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub global_requests_after: Option<u64>,
}

impl Verification {
    /// A finding that was not confronted with a device, and why.
    pub fn not_run(reason: impl Into<String>) -> Verification {
        Verification { reason: Some(reason.into()), ..Verification::default() }
    }
}

impl fmt::Display for Verification {
    /// One line for the text report: `confirmed: 32.0 sectors measured, 32.0 predicted (LDG, NVIDIA H200); 1.00 -> 0.46 ms`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.status)?;
        let shared = self.measured_wavefronts.is_some();
        let measured = self.measured_wavefronts.or(self.measured_sectors);
        if let Some(measured) = measured {
            let unit = if shared { "wavefronts" } else { "sectors" };
            write!(f, ": {measured:.2} {unit} measured")?;
            if let Some(predicted) = self.predicted {
                write!(f, ", {predicted:.2} predicted")?;
            }
            let at: Vec<&str> = self.opcode.as_deref().into_iter().chain(self.device.as_deref()).collect();
            if !at.is_empty() {
                write!(f, " ({})", at.join(", "))?;
            }
        }
        if let Some(reason) = &self.reason {
            write!(f, "{} {reason}", if measured.is_some() { ";" } else { ":" })?;
        }
        match (self.milliseconds_before, self.milliseconds_after) {
            (Some(before), Some(after)) => write!(f, "; {before:.3} -> {after:.3} ms with the fix"),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures() {
        let arch = |text: &str| text.parse::<Arch>();
        assert_eq!(arch("sm_90"), Ok(Arch::from(90)));
        assert_eq!(arch("sm_90a").map(|arch| arch.to_string()), Ok("sm_90a".to_owned()));
        for wrong in ["90", "sm_", "sm_9", "compute_90", "sm_90b", "sm_a"] {
            assert!(arch(wrong).is_err(), "{wrong}");
        }
        // Code for 8.0 runs on 8.6, not the other way round, and not on 9.0; sm_90a on 9.0 alone.
        let runs = |text: &str, device| arch(text).is_ok_and(|arch| arch.runs_on(device));
        assert!(runs("sm_80", 86) && !runs("sm_86", 80) && !runs("sm_80", 90));
        assert!(runs("sm_90a", 90) && runs("sm_100f", 103) && !runs("sm_100a", 103));
    }
}
