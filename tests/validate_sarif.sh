#!/bin/sh
# Runs outside validators on reports written by `cargo test --test it report` (or on the SARIF files given).
#
#   SARIF   JSON schema and GitHub's rules by Microsoft's multitool, read by sarif-tools
#   rdjson  rdformat-validator       JUnit  junitparser
#
# GitLab, JUnit and Checkstyle are held against their schemas by `cargo test` itself. Installs nothing: `.ci/run` does. Tools:
# npm `@microsoft/sarif-multitool` and `@umbrelladocs/rdformat-validator` under $NODE_MODULES (default
# target/ci-node/node_modules), PyPI `check-jsonschema`, `sarif-tools` and `junitparser` on the PATH. What is absent is skipped
# with a line; an error or a warning of any that is there fails.
set -u
modules=${NODE_MODULES:-target/ci-node/node_modules}
reports=target/tmp
multitool=$modules/@microsoft/sarif-multitool-linux
failed=0
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say() { printf '%s\n' "$*"; }
skip() { say "skipped: $1 ($2 is not there)"; }
fail() { say "FAILED: $*"; failed=1; }

[ $# -gt 0 ] || set -- "$reports/full.sarif" "$reports/empty.sarif"
for file in "$@"; do
    [ -f "$file" ] || { fail "$file is not there: run cargo test --test it report"; continue; }

    if command -v check-jsonschema >/dev/null && [ -f "$multitool/sarif-2.1.0.json" ]; then
        check-jsonschema --schemafile "$multitool/sarif-2.1.0.json" "$file" || fail "schema: $file"
    else
        skip "schema: $file" "check-jsonschema or the multitool package"
    fi

    if [ -f "$multitool/Sarif.Multitool" ]; then
        chmod u+x "$multitool/Sarif.Multitool"
        DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 "$multitool/Sarif.Multitool" validate "$file" \
            --rule-kind "Sarif;Ghas" --level "Error;Warning;Note" -o "$scratch/out.sarif" --log ForceOverwrite \
            >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "multitool: $file"; }
        # The exit code says nothing about findings: read its log. SARIF2005 asks for the tool's web page, which
        # exists once Cargo.toml names a repository.
        python3 - "$scratch/out.sarif" "$file" <<'PY' || fail "multitool: $file"
import collections, json, re, sys
results = json.load(open(sys.argv[1]))["runs"][0].get("results", [])
homeless = not re.search(r"^repository *=", open("Cargo.toml").read(), re.M)
counts = collections.Counter()
bad = []
for result in results:
    level = result.get("level", "warning")
    if homeless and result["ruleId"] == "SARIF2005":
        level = "no repository yet"
    counts[level, result["ruleId"]] += 1
    if level in ("error", "warning"):
        bad.append((result["ruleId"], result["message"].get("arguments")))
print("multitool:", sys.argv[2], {f"{level} {rule}": n for (level, rule), n in sorted(counts.items())})
for rule in bad:
    print(*rule)
sys.exit(bool(bad))
PY
    else
        skip "multitool: $file" "$multitool"
    fi

    if command -v sarif >/dev/null; then
        sarif summary "$file" >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "sarif-tools: $file"; }
    else
        skip "sarif-tools: $file" "sarif"
    fi
done

for name in full empty; do
    if [ -x "$modules/.bin/rdformat-validator" ]; then
        "$modules/.bin/rdformat-validator" "$reports/$name.rdjson" >"$scratch/log" 2>&1 &&
            grep -q "Total errors: 0" "$scratch/log" || { cat "$scratch/log"; fail "rdjson: $name"; }
    else
        skip "rdjson: $name" "rdformat-validator"
    fi
    if python3 -c 'import junitparser' 2>/dev/null; then
        python3 -c 'import junitparser, sys; junitparser.JUnitXml.fromfile(sys.argv[1])' "$reports/$name.junit" ||
            fail "junit: $name"
    else
        skip "junit: $name" "junitparser"
    fi
done
[ "$failed" = 0 ] && say "all that ran passed"
exit "$failed"
