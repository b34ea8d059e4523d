//! CUPTI's SASS metrics: per instruction, how often it ran, with how many lanes, for how many sectors or wavefronts.
//!
//! The same data as the profiler's source page, read in process. Order of the calls: initialise (after the
//! context), choose metrics for the chip, set the configuration, enable, launch, read the sizes, flush, disable.
//! CUPTI gives one record per metric group and instruction; they are added up per (function, offset).

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};

use cudarc::cupti::{result::CuptiError, sys};

use super::compile::Cubin;
use super::device::Gpu;
use super::job::{Direction, Measured, Space};
use super::{library, sass};

const METRICS: [&str; 8] = [
    "smsp__sass_inst_executed",
    "smsp__sass_thread_inst_executed_pred_on",
    "smsp__sass_sectors_mem_global",
    "smsp__sass_sectors_mem_global_ideal",
    "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared",
    "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared_ideal",
    "smsp__sass_sectors_mem_local",
    "smsp__sass_sectors_mem_local_ideal",
];

/// Values in the order of [`METRICS`].
type Values = [u64; METRICS.len()];

/// Runs `launch` under the counters and gives one [`Measured`] per memory instruction, also of those that no warp came to.
pub fn measure(
    gpu: &Gpu,
    cubin: &Cubin,
    launch: impl FnOnce() -> Result<(), String>,
) -> Result<Vec<Measured>, String> {
    library::cupti()?;
    // SAFETY: CUPTI is present and the context current; every structure below says its own size.
    let mut records = unsafe { collect(gpu, launch)? };
    for (offset, _) in sass::instructions(&cubin.bytes, &cubin.name) {
        if let Ok(offset) = u32::try_from(offset) {
            records.entry((cubin.name.clone(), offset)).or_default();
        }
    }
    let measured = records.into_iter().filter_map(|((function, offset), values)| {
        let instruction = sass::instruction(&cubin.bytes, &function, u64::from(offset))?;
        // SAFETY: as above.
        let (file, line) = unsafe { source_line(&cubin.bytes, &function, u64::from(offset)) }?;
        Some(summarise(instruction, values, file, line))
    });
    Ok(measured.flatten().collect())
}

/// An instruction's counters; an async copy gives two, one per space it touches.
fn summarise(instruction: sass::Instruction, values: Values, file: String, line: u32) -> Vec<Measured> {
    let [requests, active, sectors, ideal_sectors, wavefronts, ideal_wavefronts, local, ideal_local] = values;
    let base = Measured {
        file,
        line,
        operation: Some(instruction.operation),
        access_bytes: instruction.bytes,
        opcode: instruction.opcode,
        requests,
        active,
        ..Measured::default()
    };
    let global = Measured { space: Some(Space::Global), sectors, ideal_sectors, ..base.clone() };
    let shared = Measured { space: Some(Space::Shared), wavefronts, ideal_wavefronts, ..base.clone() };
    let local = Measured { space: Some(Space::Local), sectors: local, ideal_sectors: ideal_local, ..base };
    match instruction.space {
        Some(Space::Global) => vec![global],
        Some(Space::Shared) => vec![shared],
        Some(Space::Local) => vec![local],
        // An async copy loads from global and stores to shared; a generic access goes where it counted.
        None if global.opcode.starts_with("LDGSTS") => {
            vec![global, Measured { operation: Some(Direction::Store), ..shared }]
        }
        None if requests > 0 => {
            [global, shared].into_iter().filter(|measured| measured.total() > 0).collect()
        }
        None => vec![global, shared],
    }
}

fn check(what: &'static str) -> impl Fn(CuptiError) -> String {
    move |error| format!("{what}: {:?}", error.0)
}

/// # Safety
/// CUPTI must be present and the context current.
unsafe fn collect(
    gpu: &Gpu,
    launch: impl FnOnce() -> Result<(), String>,
) -> Result<BTreeMap<(String, u32), Values>, String> {
    // SAFETY: plain C structures, for which zero is a valid value; the caller's promise for the calls.
    unsafe {
        let mut start: sys::CUpti_Profiler_Initialize_Params = std::mem::zeroed();
        start.structSize = sys::Profiler_Initialize_Params_STRUCT_SIZE as usize;
        sys::cuptiProfilerInitialize(&mut start).result().map_err(check("cuptiProfilerInitialize"))?;

        let ids = metric_ids(gpu)?;
        let granularity = sys::CUpti_SassMetrics_OutputGranularity::CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU;
        let mut configs: Vec<sys::CUpti_SassMetrics_Config> = ids
            .keys()
            .map(|&id| sys::CUpti_SassMetrics_Config { metricId: id, outputGranularity: granularity as u8 })
            .collect();
        let mut set: sys::CUpti_SassMetricsSetConfig_Params = std::mem::zeroed();
        set.structSize = sys::SassMetricsSetConfig_Params_STRUCT_SIZE as usize;
        set.numOfMetricConfig = configs.len();
        set.pConfigs = configs.as_mut_ptr();
        set.deviceIndex = gpu.ordinal;
        sys::cuptiSassMetricsSetConfig(&mut set).result().map_err(check("cuptiSassMetricsSetConfig"))?;

        let mut enable: sys::CUpti_SassMetricsEnable_Params = std::mem::zeroed();
        enable.structSize = sys::SassMetricsEnable_Params_STRUCT_SIZE as usize;
        enable.ctx = gpu.context.cast();
        enable.enableLazyPatching = 1;
        sys::cuptiSassMetricsEnable(&mut enable).result().map_err(check("cuptiSassMetricsEnable"))?;

        let records = match launch().and_then(|()| gpu.wait()) {
            Ok(()) => flush(gpu, &ids),
            Err(error) => return Err(error),
        };

        let mut disable: sys::CUpti_SassMetricsDisable_Params = std::mem::zeroed();
        disable.structSize = sys::SassMetricsDisable_Params_STRUCT_SIZE as usize;
        disable.ctx = gpu.context.cast();
        sys::cuptiSassMetricsDisable(&mut disable).result().map_err(check("cuptiSassMetricsDisable"))?;
        let mut unset: sys::CUpti_SassMetricsUnsetConfig_Params = std::mem::zeroed();
        unset.structSize = sys::SassMetricsUnsetConfig_Params_STRUCT_SIZE as usize;
        unset.deviceIndex = gpu.ordinal;
        sys::cuptiSassMetricsUnsetConfig(&mut unset)
            .result()
            .map_err(check("cuptiSassMetricsUnsetConfig"))?;
        records
    }
}

/// The chip's identifiers of those of [`METRICS`] that it has, with their place there.
///
/// # Safety
/// As [`collect`].
unsafe fn metric_ids(gpu: &Gpu) -> Result<BTreeMap<u64, usize>, String> {
    // SAFETY: as in `collect`; the chip's name and the list live through the calls that read them.
    unsafe {
        let mut chip: sys::CUpti_Device_GetChipName_Params = std::mem::zeroed();
        chip.structSize = sys::Device_GetChipName_Params_STRUCT_SIZE as usize;
        chip.deviceIndex = gpu.ordinal as usize;
        sys::cuptiDeviceGetChipName(&mut chip).result().map_err(check("cuptiDeviceGetChipName"))?;

        let mut number: sys::CUpti_SassMetrics_GetNumOfMetrics_Params = std::mem::zeroed();
        number.structSize = sys::SassMetrics_GetNumOfMetrics_Params_STRUCT_SIZE as usize;
        number.pChipName = chip.pChipName;
        let status = sys::cuptiSassMetricsGetNumOfMetrics(&mut number).result();
        status.map_err(check("cuptiSassMetricsGetNumOfMetrics"))?;

        let mut list: Vec<sys::CUpti_SassMetrics_MetricDetails> = Vec::new();
        list.resize_with(number.numOfMetrics, || std::mem::zeroed());
        let mut get: sys::CUpti_SassMetrics_GetMetrics_Params = std::mem::zeroed();
        get.structSize = sys::SassMetrics_GetMetrics_Params_STRUCT_SIZE as usize;
        get.pChipName = chip.pChipName;
        get.numOfMetrics = list.len();
        get.pMetricsList = list.as_mut_ptr();
        sys::cuptiSassMetricsGetMetrics(&mut get).result().map_err(check("cuptiSassMetricsGetMetrics"))?;

        let known = list.iter().filter(|metric| !metric.pMetricName.is_null()).filter_map(|metric| {
            let name = CStr::from_ptr(metric.pMetricName).to_str().ok()?;
            Some((metric.metricId, METRICS.iter().position(|&wanted| wanted == name)?))
        });
        let known: BTreeMap<u64, usize> = known.collect();
        if known.is_empty() {
            return Err("this device has no SASS metrics".to_owned());
        }
        Ok(known)
    }
}

/// # Safety
/// As [`collect`], between enabling and disabling.
unsafe fn flush(gpu: &Gpu, ids: &BTreeMap<u64, usize>) -> Result<BTreeMap<(String, u32), Values>, String> {
    // SAFETY: as in `collect`; the arrays have the lengths that CUPTI asked for and live until they are read.
    unsafe {
        let mut sizes: sys::CUpti_SassMetricsGetDataProperties_Params = std::mem::zeroed();
        sizes.structSize = sys::SassMetricsGetDataProperties_Params_STRUCT_SIZE as usize;
        sizes.ctx = gpu.context.cast();
        let status = sys::cuptiSassMetricsGetDataProperties(&mut sizes).result();
        status.map_err(check("cuptiSassMetricsGetDataProperties"))?;
        let (records, instances) = (sizes.numOfPatchedInstructionRecords, sizes.numOfInstances);
        if records == 0 || instances == 0 {
            return Err("CUPTI counted nothing".to_owned());
        }

        let empty = sys::CUpti_SassMetrics_InstanceValue { metricId: u64::MAX, value: 0 };
        let mut values = vec![empty; records.saturating_mul(instances)];
        let mut data: Vec<sys::CUpti_SassMetrics_Data> = values
            .chunks_mut(instances)
            .map(|chunk| {
                let mut record: sys::CUpti_SassMetrics_Data = std::mem::zeroed();
                record.structSize = size_of::<sys::CUpti_SassMetrics_Data>();
                record.pInstanceValues = chunk.as_mut_ptr();
                record
            })
            .collect();
        let mut get: sys::CUpti_SassMetricsFlushData_Params = std::mem::zeroed();
        get.structSize = sys::SassMetricsFlushData_Params_STRUCT_SIZE as usize;
        get.ctx = gpu.context.cast();
        get.numOfPatchedInstructionRecords = records;
        get.numOfInstances = instances;
        get.pMetricsData = data.as_mut_ptr();
        sys::cuptiSassMetricsFlushData(&mut get).result().map_err(check("cuptiSassMetricsFlushData"))?;

        let mut summed: BTreeMap<(String, u32), Values> = BTreeMap::new();
        for (record, values) in data.iter().zip(values.chunks(instances)) {
            if record.functionName.is_null() {
                continue;
            }
            let function = CStr::from_ptr(record.functionName).to_string_lossy().into_owned();
            let sums = summed.entry((function, record.pcOffset)).or_default();
            for value in values {
                if let Some(sum) = ids.get(&value.metricId).and_then(|&at| sums.get_mut(at)) {
                    *sum += value.value;
                }
            }
        }
        Ok(summed)
    }
}

/// File and 1-based line of an instruction, from the CUBIN's line table; the innermost inlined function's.
///
/// # Safety
/// CUPTI must be present.
unsafe fn source_line(cubin: &[u8], function: &str, offset: u64) -> Option<(String, u32)> {
    let function = CString::new(function).ok()?;
    // SAFETY: the CUBIN and the name live through the call; the strings are CUPTI's and end with zero.
    unsafe {
        let mut ask: sys::CUpti_GetSassToSourceCorrelationParams = std::mem::zeroed();
        ask.size = sys::GetSassToSourceCorrelationParamsSize as usize;
        ask.cubin = cubin.as_ptr().cast();
        ask.cubinSize = cubin.len();
        ask.functionName = function.as_ptr();
        ask.pcOffset = offset;
        sys::cuptiGetSassToSourceCorrelation(&mut ask).result().ok()?;
        let text = |at: *const c_char| {
            if at.is_null() { String::new() } else { CStr::from_ptr(at).to_string_lossy().into_owned() }
        };
        let (file, folder) = (text(ask.fileName), text(ask.dirName));
        let absolute = file.starts_with('/') || folder.is_empty();
        Some((if absolute { file } else { format!("{folder}/{file}") }, ask.lineNumber))
    }
}
