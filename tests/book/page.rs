//! A page of the documentation and the things that it shows: files of the repository, and outputs of commands. This
//! module knows no particular command.

use std::path::Path;

const FENCE: &str = "```";

/// Fails at the first line of the page that differs from the file or output it shows. With `UPDATE` set it writes the
/// page anew instead.
pub(crate) fn check(root: &Path, path: &str, printed: impl Fn(&str) -> String) {
    let page = fs_err::read_to_string(root.join(path)).unwrap();
    let renewed = renewed(root, &page, printed);
    if std::env::var_os("UPDATE").is_some() {
        return fs_err::write(root.join(path), renewed).unwrap();
    }
    for (number, (is, should)) in page.lines().zip(renewed.lines()).enumerate() {
        assert_eq!(is, should, "{path}:{} (UPDATE=1 renews it)", number + 1);
    }
    assert_eq!(page, renewed);
}

/// The page with its files and outputs renewed.
fn renewed(root: &Path, page: &str, printed: impl Fn(&str) -> String) -> String {
    let mut lines = page.lines();
    let mut out = Vec::new();
    while let Some(line) = lines.next() {
        out.push(line.to_owned());
        let shown = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
        if let Some(file) = shown {
            out.push(lines.next().expect("a block follows the name of its file").to_owned());
            lines.by_ref().find(|line| *line == FENCE).expect("the block ends");
            let text = fs_err::read_to_string(root.join(file)).unwrap();
            out.extend([text.trim_end().to_owned(), FENCE.to_owned()]);
        } else if line == "```console" {
            let block = lines.by_ref().take_while(|line| *line != FENCE);
            for command in block.filter_map(|line| line.strip_prefix("$ ")) {
                out.push(format!("$ {command}"));
                let said = printed(command);
                out.extend(said.trim_end().lines().map(|line| line.trim_end().to_owned()));
            }
            out.push(FENCE.to_owned());
        }
    }
    out.join("\n") + "\n"
}
