//! What others run: the pre-commit hooks and the action's shell, with the program that was built.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_cudalint");

fn repository(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// `PATH` with directories in front.
fn path(first: &[&Path]) -> OsString {
    let rest = std::env::var_os("PATH").unwrap_or_default();
    let rest: Vec<PathBuf> = std::env::split_paths(&rest).collect();
    std::env::join_paths(first.iter().copied().map(Path::to_owned).chain(rest)).unwrap()
}

fn git(directory: &Path, args: &[&str]) {
    let settings =
        ["user.name=t", "user.email=t@example.com", "commit.gpgsign=false", "init.defaultBranch=main"];
    let settings = settings.iter().flat_map(|setting| ["-c", setting]);
    let done = Command::new("git").args(settings).args(args).current_dir(directory).output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// The hooks, taken from a repository of their own and run on one with .cu, .cuh and .hpp files. Only how the program
/// is installed is replaced: it is the one that was built.
#[test]
fn the_hooks_run_in_pre_commit() {
    if Command::new("pre-commit").arg("--version").output().is_err() {
        eprintln!("skipped: pre-commit is not installed");
        return;
    }
    let world = tempfile::tempdir().unwrap();
    let (hooks, user) = (world.path().join("hooks"), world.path().join("user"));
    let write = |path: &Path, text: &str| {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let yaml = repository(".pre-commit-hooks.yaml").replace("language: python", "language: system");
    assert!(yaml.matches("require_serial: true").count() >= 3);
    write(&hooks.join(".pre-commit-hooks.yaml"), &yaml.replace("language: rust", "language: system"));
    git(&hooks, &["init", "-q"]);
    git(&hooks, &["add", "."]);
    git(&hooks, &["commit", "-qm", "hooks"]);
    git(&hooks, &["tag", "v1"]);

    let idle = "__global__ void k() {} // cudalint: allow(no-such-rule)\n";
    write(&user.join("src/a.cu"), idle);
    write(&user.join("src/b.cuh"), "__device__ int b;\n");
    write(&user.join("src/c.hpp"), idle);
    write(&user.join("third_party/d.cu"), idle);
    write(&user.join("cudalint.toml"), "exclude = [\"third_party/\"]\n");
    let config = format!(
        "repos:\n- repo: {}\n  rev: v1\n  hooks:\n  - id: cudalint\n    types_or: [cuda, c++]\n  - id: cudalint-config\n",
        hooks.display()
    );
    write(&user.join(".pre-commit-config.yaml"), &config);
    git(&user, &["init", "-q"]);
    git(&user, &["add", "."]);
    let run = || {
        let mut command = Command::new("pre-commit");
        command.args(["run", "--all-files", "--verbose"]).current_dir(&user);
        command.env("PATH", path(&[Path::new(PROGRAM).parent().unwrap()]));
        command.env("PRE_COMMIT_HOME", world.path().join("home")).output().unwrap()
    };
    let ran = run();
    let printed = text(&ran);
    assert!(!ran.status.success(), "{printed}");
    assert!(printed.contains("src/a.cu") && printed.contains("src/c.hpp"), "{printed}");
    assert!(!printed.contains("third_party/d.cu"), "{printed}");

    // The same files, the same findings as in a full run.
    let full =
        Command::new(PROGRAM).args(["--output-format", "concise"]).current_dir(&user).output().unwrap();
    let found = String::from_utf8_lossy(&full.stdout).into_owned();
    assert_eq!(found.lines().count(), 2, "{found}");

    write(&user.join("src/a.cu"), "__global__ void k() {}\n");
    write(&user.join("src/c.hpp"), "__global__ void k() {}\n");
    assert!(run().status.success());
    write(&user.join("cudalint.toml"), "exclde = []\n");
    let printed = text(&run());
    assert!(printed.contains("did you mean `exclude`?"), "{printed}");
}

/// The wheel is built, installed into an environment of its own and run.
#[test]
fn the_wheel_installs_and_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    if Command::new("maturin").arg("--version").output().is_err() {
        eprintln!("skipped: maturin is not installed");
        return;
    }
    if !root.join("README.md").exists() {
        eprintln!("skipped: there is no README.md, which a package needs");
        return;
    }
    let world = tempfile::tempdir().unwrap();
    let (wheels, venv) = (world.path().join("wheels"), world.path().join("venv"));
    let run = |command: &mut Command| {
        let done = command.output().unwrap();
        assert!(done.status.success(), "{command:?}: {}", text(&done));
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    run(Command::new("maturin").args(["build", "--profile", "dev", "--out"]).arg(&wheels).current_dir(root));
    let wheel = std::fs::read_dir(&wheels).unwrap().next().unwrap().unwrap().path();
    run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    run(Command::new(venv.join("bin/pip")).args(["install", "--quiet", "--no-index"]).arg(&wheel));
    let version = run(Command::new(venv.join("bin/cudalint")).arg("--version"));
    assert_eq!(version, format!("cudalint {}\n", env!("CARGO_PKG_VERSION")));
}

/// The shell of `action.yml`, step by step, with an installation that is only made up.
#[cfg(unix)]
#[test]
fn the_actions_shell_runs() {
    use std::os::unix::fs::PermissionsExt;
    let world = tempfile::tempdir().unwrap();
    let (tools, temp, project) =
        (world.path().join("tools"), world.path().join("temp"), world.path().join("project"));
    for directory in [&tools, &temp, &project] {
        std::fs::create_dir_all(directory).unwrap();
    }
    let script = |path: &Path, text: &str| {
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    // `python3 -m venv DIR` makes a python there that notes what it is asked to install.
    let venv = format!(
        "#!/bin/sh\nmkdir -p \"$3/bin\"\nln -s {PROGRAM} \"$3/bin/cudalint\"\n\
         printf '#!/bin/sh\\necho \"$@\" > {}/installed\\n' > \"$3/bin/python\"\nchmod +x \"$3/bin/python\"\n",
        world.path().display()
    );
    script(&tools.join("python3"), &venv);
    std::fs::write(project.join("a b.cu"), "// cudalint: allow(no-such-rule)\n").unwrap();
    std::fs::write(project.join("c.cu"), "// cudalint: allow(no-such-rule)\n").unwrap();
    let steps = run_blocks(&repository("action.yml"));
    assert_eq!(steps.len(), 3);
    let bin = temp.join("cudalint/bin");
    let run = |step: &str, variables: &[(&str, &str)]| {
        Command::new("bash")
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", step])
            .current_dir(&project)
            .env("PATH", path(&[&bin, &tools]))
            .env("RUNNER_TEMP", &temp)
            .env("GITHUB_PATH", world.path().join("path"))
            .env("GITHUB_OUTPUT", world.path().join("output"))
            .env("GITHUB_STEP_SUMMARY", world.path().join("summary"))
            .envs(variables.iter().copied())
            .output()
            .unwrap()
    };
    let read = |name: &str| std::fs::read_to_string(world.path().join(name)).unwrap();

    let installed = run(&steps[0], &[("CUDALINT_VERSION", "0.1.0")]);
    assert!(installed.status.success(), "{}", text(&installed));
    assert!(read("installed").trim_end().ends_with("cudalint==0.1.0"));
    assert_eq!(read("path").trim_end(), bin.to_string_lossy());

    let args =
        [("CUDALINT_PATHS", "c.cu\n"), ("CUDALINT_ARGS", "--fail-on warn"), ("CUDALINT_CATEGORY", "gpu")];
    let checked = run(&steps[1], &args);
    assert!(checked.status.success(), "{}", text(&checked));
    let printed = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(
        printed.contains("::warning") && printed.contains("c.cu") && !printed.contains("a b.cu"),
        "{printed}"
    );
    let sarif = temp.join("cudalint.sarif");
    assert_eq!(read("output"), format!("exit-code=1\nsarif-file={}\n", sarif.display()));
    let log: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&sarif).unwrap()).unwrap();
    assert_eq!(log["runs"][0]["results"].as_array().unwrap().len(), 1);
    assert!(read("summary").contains("unused-allow"));

    let args = [("CUDALINT_PATHS", "."), ("CUDALINT_ARGS", ""), ("CUDALINT_CATEGORY", "gpu")];
    let checked = run(&steps[1], &args);
    assert!(String::from_utf8_lossy(&checked.stdout).contains("a b.cu"), "{}", text(&checked));
    for (code, expected) in [("0", 0), ("1", 1)] {
        assert_eq!(run(&steps[2], &[("CUDALINT_EXIT_CODE", code)]).status.code(), Some(expected));
    }
}

/// The `run: |` blocks of an action.
fn run_blocks(yaml: &str) -> Vec<String> {
    let mut blocks = Vec::new();
    let mut lines = yaml.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(indent) = line.find("run: |") else { continue };
        let mut block = String::new();
        let inside = |line: &&str| line.trim().is_empty() || line.len() - line.trim_start().len() > indent;
        while let Some(line) = lines.next_if(inside) {
            block.push_str(line.get(indent + 2..).unwrap_or(""));
            block.push('\n');
        }
        blocks.push(block);
    }
    blocks
}
