//! Measures without a profiler: the flagged expressions of the source are made to record their addresses.
//!
//! An lvalue `X` becomes `(*__cl_rec(k, &(X)))`; the function, put before the source, stores the active lanes and their
//! addresses for the first executions of each site. The host computes sectors and wavefronts from them. It sees the source's
//! access, not what the compiler makes of it: a `float4` is one access here even where three loads would do.

use std::ffi::CStr;

use super::compile::Cubin;
use super::device::{self, Gpu, Inputs};
use super::job::{Direction, Job, Measured, Prediction, Space};
use crate::memory;

/// Executions kept per site.
const KEPT: usize = 1024;
/// Bytes of `__cl_record` on the device.
const RECORD_BYTES: usize = 16 + 32 * 8;

/// An access of the source that is to be recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Site<'a> {
    pub file: &'a str,
    /// 1-based.
    pub line: u32,
    /// 1-based, in bytes.
    pub column: u32,
    /// The lvalue at that place.
    pub text: &'a str,
}

/// One execution of a site by one warp.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub active: u32,
    pub bytes: u32,
    pub shared: bool,
    pub addresses: [u64; 32],
}

/// The recording function; `COUNT` sites. `#line 1` after it keeps the source's own numbering.
fn prelude(sites: usize) -> String {
    format!(
        r#"struct __cl_record {{ unsigned mask, bytes, space, pad; unsigned long long address[32]; }};
__device__ unsigned __cl_count[{sites}];
__device__ __cl_record* __cl_buffer;
template <class T> __device__ __noinline__ T* __cl_rec(int site, T* p) {{
  unsigned mask = __activemask(), lane, slot = 0;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  int leader = __ffs(mask) - 1;
  if (lane == leader) slot = atomicAdd(&__cl_count[site], 1u);
  slot = __shfl_sync(mask, slot, leader);
  if (slot < {KEPT}u) {{
    __cl_record* r = __cl_buffer + (unsigned long long)site * {KEPT}u + slot;
    bool shared = __isShared((const void*)p);
    r->address[lane] = shared ? (unsigned long long)__cvta_generic_to_shared((const void*)p) : (unsigned long long)p;
    if (lane == leader) {{ r->mask = mask; r->bytes = sizeof(T); r->space = shared; }}
  }}
  return p;
}}
"#
    )
}

/// The same function where it is asked which site leaves the buffers: it keeps each site's first address outside all of the
/// `ranges` ranges. They are kept in host memory, which survives the fault.
fn tracing_prelude(ranges: usize) -> String {
    format!(
        r#"__device__ unsigned long long __cl_ranges[{ranges} * 2];
__device__ volatile unsigned long long* __cl_outside;
template <class T> __device__ __noinline__ T* __cl_rec(int site, T* p) {{
  if (__isGlobal((const void*)p)) {{
    unsigned long long at = (unsigned long long)p;
    bool inside = false;
    for (int i = 0; i < {ranges}; ++i)
      inside |= at >= __cl_ranges[2 * i] && at + sizeof(T) <= __cl_ranges[2 * i + 1];
    if (!inside && __cl_outside[site] == 0) {{
      __cl_outside[site] = at;
      __threadfence_system();
    }}
  }}
  return p;
}}
"#
    )
}

/// `source` with its sites recording, and for each site whether its text was found where it should be.
pub fn instrument(source: &str, sites: &[Site]) -> (String, Vec<bool>) {
    instrumented(&prelude(sites.len().max(1)), source, sites)
}

/// `source` with its sites telling where they leave `ranges` buffers.
pub fn instrument_tracing(source: &str, sites: &[Site], ranges: usize) -> (String, Vec<bool>) {
    instrumented(&tracing_prelude(ranges.max(1)), source, sites)
}

fn instrumented(prelude: &str, source: &str, sites: &[Site]) -> (String, Vec<bool>) {
    let mut found = vec![false; sites.len()];
    let mut out = prelude.to_owned();
    out.push_str("#line 1 \"cudalint.cu\"\n");
    let (mut file, mut line) = ("cudalint.cu".to_owned(), 1u32);
    for text in source.split_inclusive('\n') {
        if let Some((at, name)) = line_directive(text) {
            line = at;
            file = name.map_or(file, str::to_owned);
            out.push_str(text);
            continue;
        }
        let here = sites.iter().enumerate().filter(|(_, site)| site.line == line && site.file == file);
        let here: Vec<(usize, &Site)> = here.collect();
        out.push_str(&rewrite(text, &here, &mut found));
        line = line.saturating_add(1);
    }
    (out, found)
}

/// One line with its sites wrapped, from right to left; of overlapping sites the rightmost start is kept.
fn rewrite(line: &str, sites: &[(usize, &Site)], found: &mut [bool]) -> String {
    let mut sites = sites.to_vec();
    sites.sort_by_key(|(_, site)| std::cmp::Reverse(site.column));
    let mut out = line.to_owned();
    let mut free = line.len();
    for (index, site) in sites {
        let Some(start) = (site.column as usize).checked_sub(1) else { continue };
        let end = start.saturating_add(site.text.len());
        if end > free || out.get(start..end) != Some(site.text) || site.text.is_empty() {
            continue;
        }
        out.replace_range(start..end, &format!("(*__cl_rec({index}, &({})))", site.text));
        free = start;
        if let Some(found) = found.get_mut(index) {
            *found = true;
        }
    }
    out
}

/// The line and file that `#line 12 "a.cu"` gives to the line after it.
fn line_directive(text: &str) -> Option<(u32, Option<&str>)> {
    let rest = text.trim_start().strip_prefix('#')?.trim_start().strip_prefix("line")?;
    let rest = rest.trim();
    let (number, name) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let name = name.trim().strip_prefix('"').and_then(|name| name.strip_suffix('"'));
    Some((number.parse().ok()?, name))
}

/// Adds up a site's records as [`Measured`].
pub fn summarise(prediction: &Prediction, records: &[Record]) -> Option<Measured> {
    let first = records.first()?;
    let mut measured = Measured {
        file: prediction.file.clone(),
        line: prediction.line,
        space: Some(if first.shared { Space::Shared } else { Space::Global }),
        operation: Some(prediction.operation),
        access_bytes: first.bytes,
        opcode: "source".to_owned(),
        ..Measured::default()
    };
    for record in records {
        let lanes = memory::Lanes::from_fn(|lane| {
            let address = record.addresses.get(lane as usize).copied().unwrap_or(0);
            (record.active >> lane & 1 == 1).then_some(address as i64)
        });
        measured.requests += 1;
        measured.active += u64::from(record.active.count_ones());
        if record.shared {
            let cost = shared_cost(&lanes, record.bytes, prediction.operation);
            measured.wavefronts += u64::from(cost.units);
            measured.ideal_wavefronts += u64::from(cost.ideal);
        } else {
            let cost = memory::global::sectors(&lanes, record.bytes);
            measured.sectors += u64::from(cost.units);
            measured.ideal_sectors += u64::from(cost.ideal);
        }
    }
    Some(measured)
}

fn shared_cost(lanes: &memory::Lanes, bytes: u32, operation: Direction) -> memory::Cost {
    let operation = match operation {
        Direction::Load => memory::SharedOp::Load,
        Direction::Store => memory::SharedOp::Store,
        Direction::Atomic => memory::SharedOp::Atomic,
    };
    memory::shared::wavefronts(lanes, bytes, operation)
}

/// Reads what the device recorded for each site.
fn parse(bytes: &[u8], count: usize) -> Vec<Record> {
    let records = bytes.chunks_exact(RECORD_BYTES).take(count);
    records
        .filter_map(|record| {
            let word = |at: usize| Some(u32::from_le_bytes(record.get(at..at + 4)?.try_into().ok()?));
            let mut addresses = [0; 32];
            for (lane, address) in addresses.iter_mut().enumerate() {
                let at = 16 + lane * 8;
                *address = u64::from_le_bytes(record.get(at..at + 8)?.try_into().ok()?);
            }
            Some(Record { active: word(0)?, bytes: word(4)?, shared: word(8)? != 0, addresses })
        })
        .collect()
}

/// Runs the job's kernel with its predictions' expressions recording.
pub(super) fn measure(
    job: &Job,
    gpu: &Gpu,
    inputs: &Inputs,
    compile: impl FnOnce(&str) -> Result<Cubin, String>,
) -> Result<Vec<Measured>, String> {
    let placed: Vec<&Prediction> =
        job.predictions.iter().filter(|p| p.column.is_some() && p.expression.is_some()).collect();
    let sites: Vec<Site> = placed.iter().map(|p| site(p)).collect();
    let (source, found) = instrument(&job.source, &sites);
    if !found.contains(&true) {
        return Err(
            "no counters, and no access of this kernel has a place in the source to record".to_owned()
        );
    }
    let cubin =
        compile(&source).map_err(|why| format!("no counters, and the recording kernel fails: {why}"))?;
    let module = gpu.load_module(&cubin.bytes)?;
    let buffer = device::zeroed(sites.len() * KEPT * RECORD_BYTES)?;
    let (pointer, _) = gpu.global(module, c"__cl_buffer")?;
    device::write(pointer, &buffer.to_le_bytes())?;
    gpu.kernel(module, &cubin.name, job.launch)?.launch(inputs)?;
    gpu.wait()?;
    read_back(gpu, module, c"__cl_count", buffer, &placed)
}

/// Runs the job's kernel and tells which accesses leave the buffers: their expression and place, and how far from which
/// argument they went. Empty where none of the accesses with a place does.
pub(super) fn trace(
    job: &Job,
    gpu: &Gpu,
    inputs: &Inputs,
    compile: impl FnOnce(&str) -> Result<Cubin, String>,
) -> Result<Vec<String>, String> {
    let all = job.predictions.iter().chain(&job.others);
    let placed: Vec<&Prediction> = all.filter(|p| p.column.is_some() && p.expression.is_some()).collect();
    let sites: Vec<Site> = placed.iter().map(|p| site(p)).collect();
    let ranges = inputs.ranges();
    let (source, _) = instrument_tracing(&job.source, &sites, ranges.len());
    let cubin = compile(&source)?;
    let module = gpu.load_module(&cubin.bytes)?;
    let outside = gpu.host_words(sites.len())?;
    let (pointer, _) = gpu.global(module, c"__cl_outside")?;
    device::write(pointer, &outside.address().to_le_bytes())?;
    let (pointer, _) = gpu.global(module, c"__cl_ranges")?;
    let words = ranges.iter().flat_map(|range| [range.at, range.at + range.bytes]);
    device::write(pointer, &words.flat_map(u64::to_le_bytes).collect::<Vec<u8>>())?;
    gpu.kernel(module, &cubin.name, job.launch)?.launch(inputs)?;
    // It may fault; what was kept is in host memory.
    let _ = gpu.wait();
    let found = placed.iter().zip(outside.read()).filter(|(_, at)| *at != 0);
    let name = |argument: usize| job.params.get(argument).map(String::as_str);
    Ok(found.filter_map(|(prediction, at)| outside_words(prediction, at, &ranges, &name)).collect())
}

/// How an access went out of range in words: `in[i + 16]` at `a.cu:3` reads 68 B past the end of `in`.
fn outside_words<'n>(
    prediction: &Prediction,
    at: u64,
    ranges: &[device::Range],
    name: &dyn Fn(usize) -> Option<&'n str>,
) -> Option<String> {
    let past = |range: &device::Range| {
        let end = (at + u64::from(prediction.access_bytes)).checked_sub(range.at + range.bytes);
        end.filter(|_| at >= range.at).map(|bytes| (bytes, "past the end", range.argument))
    };
    let before =
        |range: &device::Range| Some((range.at.checked_sub(at)?, "before the start", range.argument));
    // Memory far from every buffer is the module's own.
    let near = ranges.iter().filter_map(|range| past(range).or_else(|| before(range)));
    let (bytes, side, argument) = near.filter(|(bytes, ..)| *bytes < device::GUARD_PAGES).min()?;
    let does = match prediction.operation {
        Direction::Load => "reads",
        Direction::Store => "writes",
        Direction::Atomic => "updates",
    };
    let of = name(argument).map_or(format!("argument {argument}"), |name| format!("`{name}`"));
    let text = prediction.expression.as_deref().unwrap_or_default();
    let (file, line) = (&prediction.file, prediction.line);
    Some(format!("`{text}` at {file}:{line} {does} {bytes} B {side} of {of}"))
}

fn site(prediction: &Prediction) -> Site<'_> {
    Site {
        file: &prediction.file,
        line: prediction.line,
        column: prediction.column.unwrap_or(0),
        text: prediction.expression.as_deref().unwrap_or_default(),
    }
}

fn read_back(
    gpu: &Gpu,
    module: cudarc::driver::sys::CUmodule,
    counters: &CStr,
    buffer: u64,
    placed: &[&Prediction],
) -> Result<Vec<Measured>, String> {
    let (counts, _) = gpu.global(module, counters)?;
    let mut measured = Vec::new();
    for (index, prediction) in placed.iter().enumerate() {
        let count = device::read(counts + index as u64 * 4, 4)?;
        let count = count.try_into().map(u32::from_le_bytes).unwrap_or(0) as usize;
        let bytes =
            device::read(buffer + (index * KEPT * RECORD_BYTES) as u64, (KEPT * RECORD_BYTES) as u64)?;
        measured.extend(summarise(prediction, &parse(&bytes, count.min(KEPT))));
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_the_expression_at_its_place() {
        let source = "#line 7 \"a.cu\"\n  out[i] = in[i * 2] + in[i * 2];\n";
        let site = |column, text| Site { file: "a.cu", line: 7, column, text };
        let sites = [site(3, "out[i]"), site(24, "in[i * 2]"), site(12, "wrong")];
        let (text, found) = instrument(source, &sites);
        assert_eq!(found, [true, true, false]);
        let wanted = "  (*__cl_rec(0, &(out[i]))) = in[i * 2] + (*__cl_rec(1, &(in[i * 2])));\n";
        assert!(text.ends_with(&format!("#line 7 \"a.cu\"\n{wanted}")), "{text}");
    }

    #[test]
    fn what_leaves_a_buffer_is_named_with_its_distance() {
        let prediction = Prediction {
            id: 0,
            file: "a.cu".to_owned(),
            line: 3,
            end_line: 3,
            column: Some(1),
            expression: Some("in[i + 16]".to_owned()),
            space: Space::Global,
            operation: Direction::Load,
            access_bytes: 4,
            sectors: None,
            ideal_sectors: None,
            wavefronts: None,
            ideal_wavefronts: None,
            profiled: None,
            assumed: None,
            here: None,
            twins: Vec::new(),
            merged_with: Vec::new(),
            is_invariant: false,
            is_repeated: false,
            by_data: false,
            calls: Vec::new(),
        };
        let range = |argument, at| device::Range { argument, at, bytes: 1024 };
        let ranges = [range(0, 1 << 40), range(1, 2 << 40)];
        let name = |argument: usize| ["in"].get(argument).copied();
        let words = |at| outside_words(&prediction, at, &ranges, &name);
        let said = |words: &str| Some(format!("`in[i + 16]` at a.cu:3 reads {words}"));
        assert_eq!(words((1 << 40) + 1024), said("4 B past the end of `in`"));
        assert_eq!(words((1 << 40) + 1024 + 64), said("68 B past the end of `in`"));
        assert_eq!(words((2 << 40) - 4), said("4 B before the start of argument 1"));
        assert_eq!(words((1 << 40) + 1022), said("2 B past the end of `in`"));
        assert_eq!(words(3 << 40), None);
    }

    #[test]
    fn nested_sites_keep_the_inner_one() {
        let source = "a[b[i]] = 0;\n";
        let site = |column, text| Site { file: "cudalint.cu", line: 1, column, text };
        let (text, found) = instrument(source, &[site(1, "a[b[i]]"), site(3, "b[i]")]);
        assert_eq!(found, [false, true]);
        assert!(text.contains("a[(*__cl_rec(1, &(b[i])))] = 0;"));
    }
}
