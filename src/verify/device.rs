//! A thin layer over the driver: one context, one module, inputs between guards, launches, times.
//!
//! Used only in the child process, which ends after one job: memory is not freed, and after a fault every later call
//! fails, which ends the job.
//!
//! Every buffer lies alone in its own mapping (`cuMemAddressReserve`, `cuMemMap`) between pages that are not mapped, so
//! that a load or a store outside it faults:
//!
//! ```text
//! unmapped | before: canaries | the buffer | after: canaries | unmapped
//!          ^ page             ^ 16 B                         ^ page
//! ```
//!
//! Pages are of 2 MiB. At [`Side::Start`] the buffer begins with its page, aligned as `cudaMalloc`'s are: there the kernel is
//! measured. At [`Side::End`] it ends with the last page, up to the 15 bytes that an alignment for the widest access may
//! leave: there the kernel is only run. What lies between buffer and page is filled with a canary, which a store changes; a
//! load there is seen by running at the other side, or in these 15 bytes by [`super::recorder::trace`]. Not noticed:
//! accesses more than [`GUARD_PAGES`] away that hit another buffer.

use std::ffi::{CStr, CString, c_void};

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use cudarc::driver::{result, sys};

use super::job::{Arg, Buffer, DOES_NOT_END, Device, Fill, Launch, MOST_BYTES};

/// Bytes before and after every buffer where the device has no virtual memory management: stores there are noticed, loads not.
const GUARD: u64 = 64 << 10;
/// Bytes of unmapped addresses before and after every mapping.
pub const GUARD_PAGES: u64 = 256 << 20;
/// The widest access: no address needs to be a multiple of more.
const ALIGNMENT: u64 = 16;
const CANARY: u8 = 0xa5;
/// Fills above this are repetitions of a block of this size.
const BLOCK: usize = 1 << 20;

/// An initialised device with a current context.
pub struct Gpu {
    pub info: Device,
    pub ordinal: u32,
    pub context: sys::CUcontext,
    /// Bytes of a page of [`sys::cuMemCreate`]; `None` where buffers cannot lie between unmapped pages.
    page: Option<u64>,
    blocks: Rc<RefCell<Blocks>>,
}

/// At which end of its mapping a buffer lies, so that what is beyond that end faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    Start,
    End,
}

/// Where a buffer lies in its mapping, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    mapped: u64,
    before: u64,
    after: u64,
}

impl Layout {
    fn new(bytes: u64, page: u64, side: Side) -> Layout {
        let used = bytes.max(1).next_multiple_of(ALIGNMENT);
        let mapped = used.next_multiple_of(page.max(ALIGNMENT));
        let before = if side == Side::End { mapped - used } else { 0 };
        Layout { mapped, before, after: mapped - before - bytes }
    }
}

/// A loaded kernel.
pub struct Kernel {
    function: sys::CUfunction,
    launch: Launch,
}

/// Kernel arguments with the device memory behind them.
pub struct Inputs<'a> {
    /// One per argument: the bytes passed.
    values: Vec<Vec<u8>>,
    placed: Vec<Placed<'a>>,
    page: Option<u64>,
    side: Side,
    blocks: Rc<RefCell<Blocks>>,
}

/// The beginnings of fills, each made once.
type Blocks = Vec<(Fill, Rc<Vec<u8>>)>;

struct Placed<'a> {
    argument: usize,
    at: sys::CUdeviceptr,
    spec: &'a Buffer,
    /// Bytes of canaries around it.
    before: u64,
    after: u64,
    /// Byte offset and address of each pointer stored inside.
    pointers: Vec<(usize, sys::CUdeviceptr)>,
}

/// `CUDA_ERROR_ILLEGAL_ADDRESS` in words where it has common ones.
pub fn explain(error: result::DriverError) -> String {
    let name = error.error_name().ok().map(CStr::to_string_lossy);
    let name = name.as_deref().unwrap_or("unknown driver error");
    let words = match error.0 {
        sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS => "the kernel accessed an address outside its buffers",
        sys::CUresult::CUDA_ERROR_MISALIGNED_ADDRESS => "the kernel made a misaligned access",
        sys::CUresult::CUDA_ERROR_LAUNCH_FAILED => "the kernel trapped",
        sys::CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION => {
            "the kernel accessed shared memory that its block does not have, or ran into an instruction that is none"
        }
        sys::CUresult::CUDA_ERROR_ASSERT => "a device assertion failed",
        sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => "not enough device memory",
        sys::CUresult::CUDA_ERROR_INVALID_VALUE => "the launch shape is not possible on this device",
        sys::CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES => "the block needs more registers than there are",
        sys::CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU => "the machine code is for another device",
        _ => return name.to_owned(),
    };
    format!("{words} ({name})")
}

/// The compute capability of device 0 times ten, which is known long before its context is made.
pub fn arch() -> Result<u32, String> {
    use sys::CUdevice_attribute as A;
    result::init().map_err(explain)?;
    let device = result::device::get(0).map_err(explain)?;
    let attribute = |which| {
        // SAFETY: the device was just got.
        unsafe { result::device::get_attribute(device, which) }.unwrap_or(0).max(0) as u32
    };
    let major = attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    Ok(major * 10 + attribute(A::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR))
}

impl Gpu {
    /// Device 0 with its primary context. The library must be present.
    pub fn open() -> Result<Gpu, String> {
        result::init().map_err(explain)?;
        let device = result::device::get(0).map_err(explain)?;
        let attribute = |which| {
            // SAFETY: the device was just got.
            unsafe { result::device::get_attribute(device, which) }.unwrap_or(0).max(0) as u32
        };
        use sys::CUdevice_attribute as A;
        let mut driver = 0;
        // SAFETY: the pointer is valid.
        let _ = unsafe { sys::cuDriverGetVersion(&mut driver) };
        let info = Device {
            name: result::device::get_name(device).map_err(explain)?,
            arch: arch()?,
            driver: driver.max(0) as u32,
            l2_bytes: u64::from(attribute(A::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)),
            persisting_bytes: u64::from(attribute(A::CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE)),
            window_bytes: u64::from(attribute(A::CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE)),
            multiprocessors: attribute(A::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT),
        };
        // SAFETY: the device is valid; the context is never released while the process lives.
        let context = unsafe { result::primary_ctx::retain(device) }.map_err(explain)?;
        // SAFETY: the context was just retained.
        unsafe { result::ctx::set_current(context) }.map_err(explain)?;
        let mappable = attribute(A::CU_DEVICE_ATTRIBUTE_VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED) == 1;
        let page = if mappable { page_bytes() } else { None };
        Ok(Gpu { info, ordinal: 0, context, page, blocks: Rc::default() })
    }

    /// Whether loads outside buffers are noticed.
    pub fn guards_loads(&self) -> bool {
        self.page.is_some()
    }

    /// Loads a CUBIN and prepares its kernel `name` for `launch`; `args` are checked against its parameters.
    pub fn load(&self, cubin: &[u8], name: &str, launch: Launch, args: &[Arg]) -> Result<Kernel, String> {
        let name = CString::new(name).map_err(|_| "the kernel's name holds a zero byte".to_owned())?;
        // SAFETY: the image is a whole CUBIN that lives through the call.
        let module = unsafe { result::module::load_data(cubin.as_ptr().cast()) }.map_err(explain)?;
        // SAFETY: the module was just loaded.
        let function = unsafe { result::module::get_function(module, name) }.map_err(explain)?;
        let kernel = Kernel { function, launch };
        if self.info.driver >= 12_040 {
            kernel.check_parameters(args)?;
        }
        if launch.shared_bytes > 48 << 10 {
            use sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as MOST;
            let bytes = i32::try_from(launch.shared_bytes).unwrap_or(i32::MAX);
            // SAFETY: the function was just got.
            unsafe { result::function::set_function_attribute(function, MOST, bytes) }.map_err(|error| {
                format!("{} B dynamic shared memory: {}", launch.shared_bytes, explain(error))
            })?;
        }
        Ok(kernel)
    }

    /// Address and size of a `__device__` variable of a CUBIN loaded by [`Gpu::load_module`].
    pub fn global(&self, module: sys::CUmodule, name: &CStr) -> Result<(sys::CUdeviceptr, usize), String> {
        // SAFETY: the module is loaded and never unloaded.
        unsafe { result::module::get_global(module, name.to_owned()) }.map_err(explain)
    }

    /// Loads a CUBIN.
    pub fn load_module(&self, cubin: &[u8]) -> Result<sys::CUmodule, String> {
        // SAFETY: the image is a whole CUBIN that lives through the call.
        unsafe { result::module::load_data(cubin.as_ptr().cast()) }.map_err(explain)
    }

    /// The kernel `name` of a loaded module, unchecked against any arguments.
    pub fn kernel(&self, module: sys::CUmodule, name: &str, launch: Launch) -> Result<Kernel, String> {
        let name = CString::new(name).map_err(|_| "the kernel's name holds a zero byte".to_owned())?;
        // SAFETY: the module is loaded and never unloaded.
        let function = unsafe { result::module::get_function(module, name) }.map_err(explain)?;
        Ok(Kernel { function, launch })
    }

    /// Makes the buffers of `args` at the given end of their mappings and fills them.
    pub fn inputs<'a>(&self, args: &'a [Arg], side: Side) -> Result<Inputs<'a>, String> {
        self.placed(args, self.page, side)
    }

    /// Makes the buffers of `args` by `cudaMalloc`, without unmapped pages around them, and fills them.
    pub fn plain_inputs<'a>(&self, args: &'a [Arg]) -> Result<Inputs<'a>, String> {
        self.placed(args, None, Side::End)
    }

    fn placed<'a>(&self, args: &'a [Arg], page: Option<u64>, side: Side) -> Result<Inputs<'a>, String> {
        let wanted: u64 = args.iter().flat_map(Arg::buffers).map(|buffer| buffer.bytes).sum();
        if wanted > MOST_BYTES {
            return Err(format!("its buffers need {} MiB of device memory", wanted >> 20));
        }
        let (values, placed, blocks) = (Vec::new(), Vec::new(), self.blocks.clone());
        let mut inputs = Inputs { values, placed, page, side, blocks };
        for (argument, arg) in args.iter().enumerate() {
            let value = match arg {
                Arg::Scalar { bytes } => bytes.clone(),
                Arg::Buffer(buffer) => inputs.place(argument, buffer)?.to_le_bytes().to_vec(),
                Arg::Struct { bytes, pointers } => {
                    let mut bytes = bytes.clone();
                    for (offset, buffer) in pointers {
                        let at = inputs.place(argument, buffer)?;
                        let Some(place) = bytes.get_mut(*offset..offset.saturating_add(8)) else {
                            return Err(format!("argument {argument}: a pointer lies outside the struct"));
                        };
                        place.copy_from_slice(&at.to_le_bytes());
                    }
                    bytes
                }
            };
            inputs.values.push(value);
        }
        inputs.refill()?;
        Ok(inputs)
    }

    /// `count` zero words of host memory that the device can write.
    pub fn host_words(&self, count: usize) -> Result<HostWords, String> {
        let bytes = count.max(1) * size_of::<u64>();
        let mut at = std::ptr::null_mut();
        // SAFETY: the pointer is valid; the memory has the length that is cleared.
        unsafe {
            let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP;
            sys::cuMemHostAlloc(&mut at, bytes, flags).result().map_err(explain)?;
            at.cast::<u8>().write_bytes(0, bytes);
        }
        Ok(HostWords { at: at.cast_const().cast(), count })
    }

    /// Waits for all work so far, but not longer than `limit`.
    pub fn wait_for(&self, limit: Duration) -> Result<(), String> {
        let mark = result::event::create(sys::CUevent_flags::CU_EVENT_DISABLE_TIMING).map_err(explain)?;
        // SAFETY: the event lives until the process ends.
        unsafe { result::event::record(mark, std::ptr::null_mut()) }.map_err(explain)?;
        let begun = Instant::now();
        loop {
            // SAFETY: as above.
            match unsafe { sys::cuEventQuery(mark) } {
                sys::CUresult::CUDA_ERROR_NOT_READY if begun.elapsed() < limit => {
                    std::thread::sleep(Duration::from_micros(50));
                }
                sys::CUresult::CUDA_ERROR_NOT_READY => {
                    return Err(format!("{DOES_NOT_END} within {:.1} s", limit.as_secs_f64()));
                }
                status => return status.result().map_err(explain),
            }
        }
    }

    /// Waits for all work; tells what went wrong in it.
    pub fn wait(&self) -> Result<(), String> {
        result::ctx::synchronize().map_err(explain)
    }
}

impl Kernel {
    fn check_parameters(&self, args: &[Arg]) -> Result<(), String> {
        for (index, arg) in args.iter().enumerate() {
            let given = match arg {
                Arg::Scalar { bytes } | Arg::Struct { bytes, .. } => bytes.len(),
                Arg::Buffer(_) => 8,
            };
            let (mut offset, mut wanted) = (0, 0);
            // SAFETY: the function is live; both pointers are valid.
            let status = unsafe { sys::cuFuncGetParamInfo(self.function, index, &mut offset, &mut wanted) };
            if status != sys::CUresult::CUDA_SUCCESS {
                return Err(format!("{} arguments were made, the kernel takes {index}", args.len()));
            }
            if wanted != given {
                return Err(format!("argument {index} was made with {given} B, the kernel takes {wanted} B"));
            }
        }
        let (mut offset, mut wanted) = (0, 0);
        // SAFETY: as above.
        let status = unsafe { sys::cuFuncGetParamInfo(self.function, args.len(), &mut offset, &mut wanted) };
        if status == sys::CUresult::CUDA_SUCCESS {
            return Err(format!("{} arguments were made, the kernel takes more", args.len()));
        }
        Ok(())
    }

    /// Queues one launch on the default stream.
    pub fn launch(&self, inputs: &Inputs) -> Result<(), String> {
        self.launch_on(std::ptr::null_mut(), inputs)
    }

    /// Queues one launch on a stream, which must live.
    pub fn launch_on(&self, stream: sys::CUstream, inputs: &Inputs) -> Result<(), String> {
        let mut params: Vec<*mut c_void> =
            inputs.values.iter().map(|value| value.as_ptr().cast_mut().cast()).collect();
        let ([gx, gy, gz], [bx, by, bz]) = (self.launch.grid, self.launch.block);
        let shared = self.launch.shared_bytes;
        // SAFETY: the driver reads as many bytes per parameter as were checked when the kernel was loaded.
        unsafe {
            result::launch_kernel(self.function, (gx, gy, gz), (bx, by, bz), shared, stream, &mut params)
        }
        .map_err(explain)
    }

    /// Milliseconds of each of `launches` launches, inputs rotating; waits for the end.
    pub fn time(&self, gpu: &Gpu, sets: &[&Inputs], launches: usize) -> Result<Vec<f64>, String> {
        let flags = sys::CUevent_flags::CU_EVENT_DEFAULT;
        let stream = std::ptr::null_mut();
        let mut marks = Vec::new();
        for inputs in sets.iter().cycle().take(launches) {
            let start = result::event::create(flags).map_err(explain)?;
            let end = result::event::create(flags).map_err(explain)?;
            // SAFETY: the events live until the process ends.
            unsafe { result::event::record(start, stream) }.map_err(explain)?;
            self.launch(inputs)?;
            // SAFETY: as above.
            unsafe { result::event::record(end, stream) }.map_err(explain)?;
            marks.push((start, end));
        }
        gpu.wait()?;
        let elapsed = marks.into_iter().map(|(start, end)| {
            // SAFETY: both events are recorded on one stream and complete.
            unsafe { result::event::elapsed(start, end) }.map(f64::from).map_err(explain)
        });
        elapsed.collect()
    }
}

impl<'a> Inputs<'a> {
    fn place(&mut self, argument: usize, spec: &'a Buffer) -> Result<sys::CUdeviceptr, String> {
        let (at, before, after) = match self.page {
            Some(page) => {
                let layout = Layout::new(spec.bytes, page, self.side);
                (map(layout.mapped)? + layout.before, layout.before, layout.after)
            }
            None => {
                let total = usize::try_from(spec.bytes.saturating_add(2 * GUARD)).unwrap_or(usize::MAX);
                // SAFETY: a plain allocation.
                let base = unsafe { result::malloc_sync(total) }.map_err(explain)?;
                (base + GUARD, GUARD, GUARD)
            }
        };
        let index = self.placed.len();
        self.placed.push(Placed { argument, at, spec, before, after, pointers: Vec::new() });
        let mut pointers = Vec::new();
        for (offset, inner) in &spec.pointers {
            pointers.push((*offset, self.place(argument, inner)?));
        }
        if let Some(placed) = self.placed.get_mut(index) {
            placed.pointers = pointers;
        }
        Ok(at)
    }

    /// Writes guards, fills and pointers anew.
    pub fn refill(&self) -> Result<(), String> {
        for placed in &self.placed {
            let bytes = placed.spec.bytes as usize;
            for (_, at, length) in placed.guards() {
                // SAFETY: guards with a length lie inside the allocation.
                unsafe { result::memset_d8_sync(at, CANARY, length as usize) }.map_err(explain)?;
            }
            let block = self.block(&placed.spec.fill, bytes);
            let block = block.get(..block.len().min(bytes)).unwrap_or_default();
            // SAFETY: every copy ends inside the buffer; what is copied is a multiple of the block, the last time its part.
            unsafe {
                result::memcpy_htod_sync(placed.at, block).map_err(explain)?;
                let mut done = block.len();
                while done < bytes && !block.is_empty() {
                    let length = done.min(bytes - done);
                    result::memcpy_dtod_sync(placed.at + done as u64, placed.at, length).map_err(explain)?;
                    done += length;
                }
            }
            for (offset, target) in &placed.pointers {
                if offset.saturating_add(8) <= bytes {
                    // SAFETY: checked to lie inside the buffer.
                    unsafe { result::memcpy_htod_sync(placed.at + *offset as u64, &target.to_le_bytes()) }
                        .map_err(explain)?;
                }
            }
        }
        Ok(())
    }

    /// What a buffer of `bytes` begins with and repeats.
    fn block(&self, fill: &Fill, bytes: usize) -> Rc<Vec<u8>> {
        let length = period(fill).unwrap_or(bytes.max(BLOCK));
        let mut blocks = self.blocks.borrow_mut();
        if let Some((_, known)) = blocks.iter().find(|(of, block)| of == fill && block.len() >= length) {
            return known.clone();
        }
        let block = Rc::new(self::fill(fill, length));
        blocks.push((fill.clone(), block.clone()));
        block
    }

    /// Writes into guard zones since the last [`Inputs::refill`], in words.
    pub fn out_of_range(&self) -> Result<Vec<String>, String> {
        let mut found = Vec::new();
        for placed in &self.placed {
            for (side, at, length) in placed.guards() {
                let changed = read(at, length)?.iter().filter(|&&byte| byte != CANARY).count();
                if changed > 0 {
                    found.push(format!("argument {}: {changed} B were written {side}", placed.argument));
                }
            }
        }
        Ok(found)
    }

    /// What all buffers hold, in order; buffers with pointers inside hold addresses and are left out.
    pub fn contents(&self) -> Result<Vec<Vec<u8>>, String> {
        let plain = self.placed.iter().filter(|placed| placed.pointers.is_empty());
        plain.map(|placed| read(placed.at, placed.spec.bytes)).collect()
    }

    pub fn bytes(&self) -> u64 {
        self.placed.iter().map(|placed| placed.spec.bytes).sum()
    }

    /// Every buffer, nested ones included.
    pub fn ranges(&self) -> Vec<Range> {
        let range =
            |placed: &Placed| Range { argument: placed.argument, at: placed.at, bytes: placed.spec.bytes };
        self.placed.iter().map(range).collect()
    }

    /// The most bytes after a buffer, which ends with its page, whose loads do not fault.
    pub fn unguarded(&self) -> u64 {
        self.placed.iter().map(|placed| placed.after).max().unwrap_or(0)
    }

    /// Whether a load just after some buffer, which begins with its page, would not fault.
    pub fn has_room_after(&self) -> bool {
        self.page.is_some() && self.unguarded() > 0
    }

    /// The address of the buffer of argument `argument`; 0 where it has none.
    pub fn address(&self, argument: usize) -> sys::CUdeviceptr {
        self.placed.iter().find(|placed| placed.argument == argument).map_or(0, |placed| placed.at)
    }
}

/// A buffer on the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The argument it is made for.
    pub argument: usize,
    pub at: sys::CUdeviceptr,
    pub bytes: u64,
}

/// Words of host memory that the device writes; they outlive a fault.
pub struct HostWords {
    at: *const u64,
    count: usize,
}

impl HostWords {
    /// As the device addresses it, which is as the host does.
    pub fn address(&self) -> sys::CUdeviceptr {
        self.at as sys::CUdeviceptr
    }

    pub fn read(&self) -> Vec<u64> {
        // SAFETY: the allocation holds `count` words and is never freed; the device may still write them, hence volatile.
        (0..self.count).map(|word| unsafe { self.at.add(word).read_volatile() }).collect()
    }
}

impl Placed<'_> {
    /// The canaries that are there: where they lie in words, their address and their length.
    fn guards(&self) -> impl Iterator<Item = (&'static str, sys::CUdeviceptr, u64)> {
        let before = ("before its start", self.at - self.before, self.before);
        let after = ("after its end", self.at + self.spec.bytes, self.after);
        [before, after].into_iter().filter(|(_, _, length)| *length > 0)
    }
}

fn memory_properties() -> sys::CUmemAllocationProp {
    // SAFETY: a plain C structure, for which zero is a valid value.
    let mut properties: sys::CUmemAllocationProp = unsafe { std::mem::zeroed() };
    properties.type_ = sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type_ = sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    properties
}

/// The granularity of mappings on device 0 in bytes; `None` where the driver does not tell.
fn page_bytes() -> Option<u64> {
    use sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM as MINIMUM;
    let mut bytes = 0;
    // SAFETY: both pointers are valid.
    let status = unsafe { sys::cuMemGetAllocationGranularity(&mut bytes, &memory_properties(), MINIMUM) };
    status.result().ok()?;
    Some(bytes as u64).filter(|&bytes| bytes > 0)
}

/// Device memory of `bytes` bytes, a multiple of the page, between [`GUARD_PAGES`] of addresses that are not mapped.
fn map(bytes: u64) -> Result<sys::CUdeviceptr, String> {
    let properties = memory_properties();
    let (length, reserved) = (bytes as usize, (bytes + 2 * GUARD_PAGES) as usize);
    let (mut base, mut handle) = (0, 0);
    // SAFETY: plain C structures, for which zero is a valid value; all pointers are to live locals. The memory is mapped
    // inside the reserved range and never unmapped.
    unsafe {
        let mut access: sys::CUmemAccessDesc = std::mem::zeroed();
        access.location = properties.location;
        access.flags = sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
        sys::cuMemAddressReserve(&mut base, reserved, 0, 0, 0).result().map_err(explain)?;
        let at = base + GUARD_PAGES;
        sys::cuMemCreate(&mut handle, length, &properties, 0).result().map_err(explain)?;
        sys::cuMemMap(at, length, 0, handle, 0).result().map_err(explain)?;
        sys::cuMemSetAccess(at, length, &access, 1).result().map_err(explain)?;
        Ok(at)
    }
}

/// Copies device memory to the host.
pub fn read(at: sys::CUdeviceptr, bytes: u64) -> Result<Vec<u8>, String> {
    let mut host = vec![0u8; usize::try_from(bytes).map_err(|_| "too large to read back".to_owned())?];
    // SAFETY: callers name ranges of live allocations.
    unsafe { result::memcpy_dtoh_sync(&mut host, at) }.map_err(explain)?;
    Ok(host)
}

/// Copies host bytes to device memory that lies inside a live allocation.
pub fn write(at: sys::CUdeviceptr, bytes: &[u8]) -> Result<(), String> {
    // SAFETY: callers name ranges of live allocations.
    unsafe { result::memcpy_htod_sync(at, bytes) }.map_err(explain)
}

/// Device memory of `bytes` zero bytes.
pub fn zeroed(bytes: usize) -> Result<sys::CUdeviceptr, String> {
    // SAFETY: a plain allocation, then cleared in full.
    unsafe {
        let at = result::malloc_sync(bytes).map_err(explain)?;
        result::memset_d8_sync(at, 0, bytes).map_err(explain)?;
        Ok(at)
    }
}

/// Bytes after which a buffer's content may begin anew, about [`BLOCK`]; `None` for a ramp that is longer.
fn period(fill: &Fill) -> Option<usize> {
    let unit = match fill {
        Fill::Zero => 1,
        Fill::Bytes(pattern) => pattern.len().max(1),
        Fill::Index { element_bytes, .. } | Fill::Float { element_bytes } => usize::from(*element_bytes),
        Fill::Ramp { element_bytes, limit } => {
            usize::try_from(*limit).ok()?.max(1).checked_mul(usize::from(*element_bytes))?
        }
    };
    (unit <= BLOCK).then(|| BLOCK / unit.max(1) * unit.max(1))
}

/// The first `bytes` bytes of a fill.
pub fn fill(fill: &Fill, bytes: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes + 8);
    match fill {
        Fill::Zero => out.resize(bytes, 0),
        Fill::Bytes(pattern) if pattern.is_empty() => out.resize(bytes, 0),
        Fill::Bytes(pattern) => out.extend(pattern.iter().cycle().take(bytes)),
        Fill::Index { element_bytes, limit } => {
            fill_integers(&mut out, bytes, *element_bytes, |i| mix(i) % (*limit).max(1));
        }
        Fill::Ramp { element_bytes, limit } => {
            fill_integers(&mut out, bytes, *element_bytes, |i| i % (*limit).max(1));
        }
        Fill::Float { element_bytes } => {
            let mut i = 0;
            while out.len() < bytes {
                // 20 random bits above 0.5: exactly representable as float, rounded to half.
                let value = 0.5 + (mix(i) >> 44) as f64 / f64::from(1 << 20);
                match element_bytes {
                    2 => out.extend(half_bits(value).to_le_bytes()),
                    8 => out.extend(value.to_le_bytes()),
                    _ => out.extend((value as f32).to_le_bytes()),
                }
                i += 1;
            }
        }
    }
    out.truncate(bytes);
    out
}

fn fill_integers(out: &mut Vec<u8>, bytes: usize, width: u8, value: impl Fn(u64) -> u64) {
    let width = usize::from(width.clamp(1, 8));
    let mut i = 0;
    while out.len() < bytes {
        out.extend(value(i).to_le_bytes().iter().take(width));
        i += 1;
    }
}

/// The bits of the half below `value` for values in `[0.5, 2)`.
fn half_bits(value: f64) -> u16 {
    let (exponent, fraction) = if value < 1.0 { (14u16, value * 2.0 - 1.0) } else { (15, value - 1.0) };
    (exponent << 10) | (fraction * 1024.0) as u16
}

/// SplitMix64: fixed, well-mixed bits per index.
fn mix(i: u64) -> u64 {
    let mut z = i.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fills_are_in_range_and_as_long_as_asked() {
        let index = fill(&Fill::Index { element_bytes: 4, limit: 10 }, 402);
        assert_eq!(index.len(), 402);
        for word in index.chunks_exact(4) {
            assert!(u32::from_le_bytes([word[0], word[1], word[2], word[3]]) < 10);
        }
        let floats = fill(&Fill::Float { element_bytes: 4 }, 400);
        for word in floats.chunks_exact(4) {
            let value = f32::from_le_bytes([word[0], word[1], word[2], word[3]]);
            assert!((0.5..1.5).contains(&value));
        }
        let ramp = fill(&Fill::Ramp { element_bytes: 2, limit: 3 }, 8);
        assert_eq!(ramp, [0, 0, 1, 0, 2, 0, 0, 0]);
    }

    #[test]
    fn buffers_lie_at_one_end_of_their_pages() {
        let page = 2 << 20;
        // 1000 B end 8 B before the next 16; the rest of the page is on the other side.
        let end = Layout::new(1000, page, Side::End);
        assert_eq!(end, Layout { mapped: page, before: page - 1008, after: 8 });
        assert_eq!(Layout::new(4000, page, Side::End).after, 0);
        let start = Layout::new(1000, page, Side::Start);
        assert_eq!(start, Layout { mapped: page, before: 0, after: page - 1000 });
        // A whole number of pages leaves nothing on either side.
        assert_eq!(Layout::new(page, page, Side::End), Layout { mapped: page, before: 0, after: 0 });
        assert_eq!(Layout::new(0, page, Side::End).after, 16);
    }

    #[test]
    fn fills_begin_anew_where_their_elements_do() {
        assert_eq!(period(&Fill::Float { element_bytes: 4 }), Some(BLOCK));
        assert_eq!(period(&Fill::Bytes(vec![0; 12])), Some(BLOCK / 12 * 12));
        // 0, 1, … 999 in four bytes each, as often as fits.
        assert_eq!(period(&Fill::Ramp { element_bytes: 4, limit: 1000 }), Some(BLOCK / 4000 * 4000));
        assert_eq!(period(&Fill::Ramp { element_bytes: 4, limit: 1 << 20 }), None);
    }

    #[test]
    fn halves() {
        // 0.5 is 0x3800, 1.0 is 0x3c00, 1.25 is 0x3d00 in IEEE half precision.
        assert_eq!([half_bits(0.5), half_bits(1.0), half_bits(1.25)], [0x3800, 0x3c00, 0x3d00]);
    }
}
