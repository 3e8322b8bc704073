//! Asks an operator that runs elsewhere: the typed command is run in its pod, without the flags that name the pod.

use std::io;
use std::path::Path;

use super::{self as outside, Outside, OutsideError};
use crate::socket::SocketError;
use crate::{Caller, CommandError, Target};

/// The flags that name the pod. They have no meaning in the pod, so they are left out, with their values.
const WAYS: [&str; 4] = ["--namespace", "--pod", "--kube-config", "--kube-context"];

/// Runs the command in the pod, and returns its exit code.
pub fn run(place: &Outside, caller: &Caller<'_>) -> Result<u8, CommandError> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    run_words(place, caller, without_way(words), None)
}

/// Runs these words in the pod, and returns the exit code. The program reads `input`, or nothing.
pub fn run_words(
    place: &Outside,
    caller: &Caller<'_>,
    words: Vec<String>,
    input: Option<&str>,
) -> Result<u8, CommandError> {
    match outside::run(place, caller, words, input) {
        Err(error) if is_unheard(&error) => Ok(0),
        ended => Ok(ended?),
    }
}

/// The answer to a path. The operator in this pod is asked, unless flags name another operator: then `command` is run
/// in the pod of that operator. If this pod has no operator, `command` is run in the pod of the operator in the
/// kubeconfig's cluster.
pub fn report(target: &Target, caller: &Caller<'_>, path: &str, command: &[&str]) -> Result<String, CommandError> {
    let elsewhere = caller.place(target);
    if elsewhere.is_none() {
        match target.socket(caller)?.get(path) {
            Ok(answer) => return Ok(answer),
            Err(SocketError::Absent { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let words = ["addon-operator"].iter().chain(command).map(|word| (*word).to_owned());
    let place = elsewhere.unwrap_or_default();
    Ok(outside::answer(
        &place,
        caller.program,
        words.collect(),
        caller.environment,
    )?)
}

/// Whether the reader has closed our output, which is no failure.
fn is_unheard(error: &OutsideError) -> bool {
    let told = error.unheard();
    told.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The name of the program as a plugin of kubectl. In its pod it has none of this name.
pub const PLUGIN: &str = "kubectl-addons";

/// The program's name without a path, and all typed arguments except those that name the pod.
pub fn without_way(words: impl IntoIterator<Item = String>) -> Vec<String> {
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    let name = Path::new(&program).file_name();
    let mut program = name.map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    if program == PLUGIN {
        "addon-operator".clone_into(&mut program);
    }
    let mut command = vec![program];
    while let Some(word) = words.next() {
        if word == "--" {
            command.push(word);
            break;
        }
        let is_way = |way: &str| word.strip_prefix(way).is_some_and(|rest| rest.starts_with('='));
        if WAYS.contains(&word.as_str()) {
            // The flag's value is the next argument.
            words.next();
        } else if !WAYS.iter().any(|way| is_way(way)) {
            command.push(word);
        }
    }
    command.extend(words);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_the_pod_is_not_taken_along() {
        let typed = "/usr/bin/addon-operator module --namespace ns list --pod=a -o wide --kube-context c -- --pod";
        let command = without_way(typed.split(' ').map(str::to_owned));
        assert_eq!(command.join(" "), "addon-operator module list -o wide -- --pod");
        let command = without_way(["/bin/kubectl-addons", "why", "a"].map(str::to_owned));
        assert_eq!(command.join(" "), "addon-operator why a");
    }
}
