//! All budgets, with their reasons. Reaching one is a gap or an assumption that is printed, never a hang.

/// Deepest expression; deeper ones become opaque. Real index expressions stay below 40.
pub const EXPRESSION_DEPTH: u16 = 120;
/// Terms that a product of two sums may have before it stays a product: `(a+b+c+d)·(e+f+g+h)` is 16.
pub const DISTRIBUTED_TERMS: usize = 24;
/// Calls inlined within calls. Device code in public kernels nests up to 9.
pub const CALL_DEPTH: usize = 14;
/// Statements executed for one kernel instance, loop bodies counted per pass.
pub const KERNEL_STEPS: usize = 40_000;
/// Statements executed for one host root, with everything it calls.
pub const HOST_STEPS: usize = 60_000;
/// Class templates instantiated for one kernel instance or one host root; further ones are types that are not seen.
pub const TYPES_PER_KERNEL: usize = 1_500;
/// What the instantiation of a class template counts in statements.
pub const STEPS_PER_TYPE: usize = 10;
/// Bytes of a host function's body above which it is not executed unless it leads to a launch: it prints, checks or fills.
pub const LONG_HOST_FUNCTION: u32 = 6_000;
/// Iterations of a host loop through a table of block sizes or kernels that are run one by one.
pub const TABLE_ITERATIONS: usize = 8;
/// Launches analysed for one kernel; more are counted, not analysed.
pub const LAUNCHES_PER_KERNEL: usize = 8;
/// Requests evaluated for one access, launch and valuation.
pub const REQUESTS_PER_ACCESS: usize = 3_000;
/// Iterations of one loop enumerated in one visit.
pub const LOOP_ITERATIONS: usize = 40;
/// Iterations run to find the value of a variable after its loop.
pub const FINAL_ITERATIONS: usize = 2_048;
/// The same where data decide the value: what comes out is a hash of the data seen.
pub const DATA_FINAL_ITERATIONS: usize = 4;
/// Iterations of a loop whose condition depends on data.
pub const DATA_ITERATIONS: usize = 2;
/// Accesses recorded for one kernel instance.
pub const ACCESSES_PER_KERNEL: usize = 1_500;
/// Expressions in one arena.
pub const ARENA_NODES: usize = 400_000;
/// Elements of a local array whose values are followed.
pub const LOCAL_ELEMENTS: usize = 256;
/// Nesting of statements, expressions, calls and types in the executor; its threads have [`STACK_BYTES`].
pub const EXECUTOR_DEPTH: usize = 300;
/// Stack of a worker thread: about 100 kB for each level of [`EXECUTOR_DEPTH`] in unoptimised builds.
pub const STACK_BYTES: usize = 128 << 20;
/// Expression nodes computed for one access, launch and valuation.
pub const EVALUATIONS_PER_ACCESS: usize = 20_000;
/// What an access gets when its kernel has used up [`EVALUATIONS_PER_KERNEL`].
pub const EVALUATIONS_AT_LEAST: usize = 1_500;
/// Expression nodes computed for one kernel in one launch.
pub const EVALUATIONS_PER_KERNEL: usize = 150_000;
