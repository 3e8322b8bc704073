//! The rules of a chart's `.helmignore`, as helm reads them. Never reads another file.

use std::path::Path;

use glob::{MatchOptions, Pattern};

/// A star never matches a separator, as in Go's `filepath.Match`.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// The rules of one file.
#[derive(Debug, Default)]
pub(super) struct Ignored(Vec<Rule>);

#[derive(Debug)]
struct Rule {
    pattern: Pattern,
    /// Whether the pattern is compared with the whole path, not with the last part of it.
    is_path: bool,
    /// Whether the rule is about directories alone.
    is_dir: bool,
    is_negated: bool,
}

impl Ignored {
    /// The rules of the chart in this directory. A file that cannot be read has no rules: helm reports it.
    pub(super) fn of(chart: &Path) -> Self {
        Self::parse(&fs_err::read_to_string(chart.join(".helmignore")).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        // Helm adds this rule to each file.
        let lines = text.lines().map(str::trim).chain(["templates/.?*"]);
        Self(lines.filter_map(Rule::parse).collect())
    }

    /// Whether helm leaves out a file or directory of the chart.
    pub(super) fn covers(&self, relative: &Path, is_dir: bool) -> bool {
        for rule in &self.0 {
            let is_match = rule.is_match(relative);
            // Helm reads a negated rule in its own way: it leaves out everything that the rule does not name.
            if rule.is_negated {
                if rule.is_dir && !is_dir || !is_match {
                    return true;
                }
            } else if is_match && (is_dir || !rule.is_dir) {
                return true;
            }
        }
        false
    }
}

impl Rule {
    fn parse(line: &str) -> Option<Self> {
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (line, is_negated) = line.strip_prefix('!').map_or((line, false), |line| (line, true));
        let (line, is_dir) = line.strip_suffix('/').map_or((line, false), |line| (line, true));
        let is_path = line.contains('/');
        let pattern = Pattern::new(line.trim_start_matches('/')).ok()?;
        Some(Self {
            pattern,
            is_path,
            is_dir,
            is_negated,
        })
    }

    fn is_match(&self, relative: &Path) -> bool {
        if self.is_path {
            return self.pattern.matches_path_with(relative, OPTIONS);
        }
        let name = relative.file_name().unwrap_or_default();
        self.pattern.matches_path_with(Path::new(name), OPTIONS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_mean_what_they_mean_to_helm() {
        let rules = Ignored::parse("# a comment\n\n*.bak\nhooks/\n/docs/*.md\nimages/big.bin\n");
        for (path, is_dir, covered) in [
            ("a.bak", false, true),
            ("deep/a.bak", false, true),
            ("hooks", true, true),
            ("hooks", false, false),
            ("lib/hooks", true, true),
            ("docs/a.md", false, true),
            ("docs/deep/a.md", false, false),
            ("images/big.bin", false, true),
            ("big.bin", false, false),
            ("templates/.hidden", false, true),
            ("templates/a.yaml", false, false),
        ] {
            assert_eq!(rules.covers(Path::new(path), is_dir), covered, "{path}");
        }
        assert!(Ignored::parse("!keep").covers(Path::new("other"), false));
        assert!(!Ignored::parse("!keep").covers(Path::new("keep"), false));
    }
}
