//! How long functions are. The code is as rustfmt leaves it: a function ends at the brace under its first letter.

/// A function: its name, the line that it begins in, and how many lines it has.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) length: usize,
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The name, if a function begins in this line.
fn name(line: &str) -> Option<&str> {
    let mut rest = line.trim_start();
    loop {
        if let Some(name) = rest.strip_prefix("fn ") {
            return name.split(['(', '<']).next();
        }
        let (word, after) = rest.split_once(' ')?;
        if !(word.starts_with("pub") || ["const", "async", "extern"].contains(&word)) {
            return None;
        }
        rest = after;
    }
}

/// The functions of a file. Those that a `macro_rules!` writes are part of its table.
pub(crate) fn functions(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    let mut macro_end = None;
    for (start, line) in lines.iter().enumerate() {
        if macro_end.is_none() && line.trim_start().starts_with("macro_rules!") {
            macro_end = Some(indent(line));
        }
        if macro_end.is_some_and(|column| line.trim() == "}" && indent(line) == column) {
            macro_end = None;
        }
        let Some(name) = name(line).filter(|_| macro_end.is_none()) else {
            continue;
        };
        let column = indent(line);
        // A declaration ends with `;`, an empty function with `{}`, every other one with a brace of its own.
        let ends_here = |line: &str| line.ends_with(';') || line.ends_with('}');
        let end = if ends_here(line) {
            start
        } else {
            let rest = lines.iter().enumerate().skip(start + 1);
            let mut rest = rest.filter(|(_, line)| indent(line) == column && !line.trim().is_empty());
            let last = rest.find(|(_, line)| ends_here(line));
            last.map_or(start, |(end, _)| end)
        };
        found.push(Function {
            name: name.to_owned(),
            line: start + 1,
            length: end - start + 1,
        });
    }
    found
}

#[test]
fn lengths_are_measured() {
    let text = "pub(crate) fn one() {}
fn two(
    a: u8,
) -> u8
where
    u8: Copy,
{
    if a == 1 {
        a
    } else {
        2
    }
}
trait Three {
    fn declared(&self);
    const fn three() {
        1
    }
}
macro_rules! four {
    () => {
        fn hidden() {
        }
    };
}
";
    let found = functions(text);
    let found: Vec<_> = found
        .iter()
        .map(|it| (it.name.as_str(), it.line, it.length))
        .collect();
    assert_eq!(
        found,
        [
            ("one", 1, 1),
            ("two", 2, 12),
            ("declared", 15, 1),
            ("three", 16, 3)
        ]
    );
}
