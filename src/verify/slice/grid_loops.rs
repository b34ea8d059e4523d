//! Loop macros that no file of the project defines: `CUDA_KERNEL_LOOP(i, n) { … }` with the header elsewhere.
//!
//! What the analysis takes such a loop to be ([`grid_loop`]) is what the slice defines.

use std::collections::BTreeMap;

use crate::ir::ast::{FunctionDef, Name, StmtKind, Unit};
use crate::ir::walk;
use crate::lower::grid_loop::{GridLoop, grid_loop};

/// A definition for each loop macro of the units by its name, whether or not a file has another.
pub fn definitions<'a>(units: impl IntoIterator<Item = &'a Unit>) -> BTreeMap<Name, String> {
    let mut found = BTreeMap::new();
    for unit in units {
        let methods = unit.structs.iter().flat_map(|of| &of.methods);
        for function in unit.functions.iter().chain(methods) {
            add(function, &mut found);
        }
    }
    found
}

fn add(function: &FunctionDef, found: &mut BTreeMap<Name, String>) {
    walk::statements(function.body.as_deref().unwrap_or_default(), &mut |stmt| {
        if let StmtKind::LoopMacro { name, args, .. } = &stmt.kind
            && let Some(read) = grid_loop(*name, args)
        {
            found.entry(*name).or_insert_with(|| definition(*name, read, args.len()));
        }
    });
}

fn definition(name: Name, GridLoop { counter, bound, ty }: GridLoop, args: usize) -> String {
    let params: Vec<String> = (0..args).map(|place| format!("cudalint_{place}")).collect();
    let params = params.join(", ");
    let ty = ty.map_or_else(|| "int".to_owned(), |place| format!("cudalint_{place}"));
    let counter = format!("cudalint_{counter}");
    format!(
        "// cudalint's own, since the project does not define it: a loop over the grid, as the analysis reads it.\n\
         #define {name}({params}) \\\n \
         for ({ty} {counter} = ({ty})blockIdx.x * blockDim.x + threadIdx.x; \\\n      \
         {counter} < (cudalint_{bound}); {counter} += blockDim.x * gridDim.x)\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::check::{Input, analyze};
    use crate::source::SourceFile;

    #[test]
    fn loops_are_what_the_analysis_takes_them_for() {
        let text = "__global__ void k(float* p, int n) {\n\
                    CUDA_KERNEL_LOOP(i, n) { p[2 * i] = 0; }\n\
                    CUDA_1D_KERNEL_LOOP_T(long, j, n) { p[4 * j] = 0; }\n\
                    CUDA_KERNEL_LOOP_TYPE(l, n, int64_t) { p[8 * l] = 0; }\n\
                    CUDA_2D_KERNEL_LOOP(x, n, y, n) { p[x] = 0; }\n}\n";
        let mut input = Input::default();
        input.checked.push(input.sources.add(SourceFile::new("a.cu", text.to_owned())));
        let known = analyze(&input);
        let sectors = known.kernels.iter().flat_map(|kernel| &kernel.accesses);
        let sectors: Vec<_> = sectors.map(|access| access.request.as_ref().map(|r| r.units)).collect();
        // 32 lanes 8, 16 and 32 B apart; how the two-dimensional one goes is not known.
        assert_eq!(sectors, [Some(8.0), Some(16.0), Some(32.0), None]);
        let found = definitions(known.project.files.iter().map(|file| &file.unit));
        let heads: Vec<&str> = found.values().filter_map(|text| text.lines().nth(2)).map(str::trim).collect();
        assert_eq!(
            heads,
            [
                "for (cudalint_0 cudalint_1 = (cudalint_0)blockIdx.x * blockDim.x + threadIdx.x; \\",
                "for (int cudalint_0 = (int)blockIdx.x * blockDim.x + threadIdx.x; \\",
                "for (cudalint_2 cudalint_0 = (cudalint_2)blockIdx.x * blockDim.x + threadIdx.x; \\",
            ]
        );
    }
}
