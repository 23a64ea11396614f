//! `completions`: scripts for shells.

use std::process::ExitCode;

use clap::Args;
use clap_complete::Shell;

use crate::print::out;
use crate::session::{Outcome, Session};

/// Prints a script that completes commands, for a shell; in bash, zsh and fish also jobs, executions and parameters
#[derive(Args, Debug)]
pub(crate) struct Completions {
    /// The shell
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, session: &Session) -> Outcome {
        let mut script = Vec::new();
        let mut arguments = session.arguments();
        let program = arguments.get_display_name().unwrap_or_default().to_owned();
        clap_complete::generate(self.shell, &mut arguments, program.as_str(), &mut script);
        out(String::from_utf8_lossy(&script).trim_end());
        let candidates = match self.shell {
            Shell::Bash => BASH,
            Shell::Zsh => ZSH,
            Shell::Fish => FISH,
            _ => "",
        };
        // As the script above names its functions.
        let function = program.replace('-', "__");
        out(candidates
            .replace("FUNCTION", &function)
            .replace("PROGRAM", &program)
            .trim_end());
        Ok(ExitCode::SUCCESS)
    }
}

/// Adds the output of `candidates`, and offers options only after a dash.
const BASH: &str = r#"
_FUNCTION_candidates() {
    local current="${COMP_WORDS[COMP_CWORD]}" candidate words
    _FUNCTION "$@"
    words=("${COMPREPLY[@]}") COMPREPLY=()
    for candidate in "${words[@]}"; do
        # The script above also has the names of arguments: `<JOB>`, `[PARAMETERS]`.
        [[ "$candidate" == [\<\[]* || "$candidate" == -* && "$current" != -* ]] || COMPREPLY+=("$candidate")
    done
    while read -r candidate; do
        [[ "$candidate" == "$current"* ]] || continue
        [[ "$candidate" == *= ]] && compopt -o nospace 2>/dev/null
        COMPREPLY+=("$candidate")
    done < <("${COMP_WORDS[0]}" candidates -- "${COMP_WORDS[@]:1:COMP_CWORD-1}" 2>/dev/null)
}
complete -F _FUNCTION_candidates -o nosort -o bashdefault -o default PROGRAM
"#;

const ZSH: &str = r#"
_PROGRAM_candidates() {
    local -a candidates
    candidates=(${(f)"$($words[1] candidates -- ${words[2,CURRENT-1]} 2>/dev/null)"})
    compadd -- ${candidates:#*=}
    compadd -S '' -- ${(M)candidates:#*=}
    _PROGRAM "$@"
}
compdef _PROGRAM_candidates PROGRAM
"#;

const FISH: &str = r#"
function __FUNCTION_candidates
    set -l words (commandline -opc)
    $words[1] candidates -- $words[2..] 2>/dev/null
end
complete -c PROGRAM -n 'test (count (commandline -opc)) -gt 1' -a '(__FUNCTION_candidates)'
"#;
