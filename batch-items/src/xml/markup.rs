//! The ends of XML markup, found byte by byte: a tag, a comment, a CDATA section, a processing instruction.
//!
//! In every encoding that a reader decodes record by record, the ASCII bytes of markup mean the same.

/// Markup that is being read, from its `<` on.
#[derive(Debug)]
pub(super) struct Markup {
    state: State,
    /// The name of an element, or the first bytes after `<!`.
    name: Vec<u8>,
    /// The number of dashes or brackets before the next byte, or 1 after a question mark.
    run: usize,
    /// The quote around the attribute value at the next byte.
    quote: Option<u8>,
    last: u8,
}

/// The kind of markup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Start,
    End,
    /// A start tag that is an end tag too.
    Empty,
    /// A comment or a CDATA section.
    Skipped,
    /// `<?..?>`
    Instruction,
    /// `<!DOCTYPE` or another declaration; only its beginning was read.
    Declaration,
    /// A `<` that is not the beginning of markup, or a tag with another `<` in it: reading stopped before that one.
    Broken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begin,
    /// After the `<`.
    Opened,
    /// After `<!`.
    Bang,
    Comment,
    Data,
    Instruction,
    /// In the name of a tag.
    Name,
    /// After the name of a tag.
    Tag,
    Declaration,
    Broken,
}

/// What is to be done after a byte.
enum Step {
    Continue,
    /// The byte is the last one.
    End,
    /// The byte before it was the last one.
    EndBefore,
}

/// No name in a property is longer; the rest of a longer one is not kept.
const LONGEST_NAME: usize = 1024;

impl Markup {
    pub(super) fn new() -> Self {
        Self {
            state: State::Begin,
            name: Vec::new(),
            run: 0,
            quote: None,
            last: 0,
        }
    }

    /// Returns the index after the markup, if it ends in `bytes`.
    pub(super) fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        for (index, byte) in bytes.iter().copied().enumerate() {
            match self.next(byte) {
                Step::Continue => self.last = byte,
                Step::End => return Some(index + 1),
                Step::EndBefore => return Some(index),
            }
        }
        None
    }

    /// Returns the kind of markup whose end was found.
    pub(super) fn kind(&self) -> Kind {
        match self.state {
            State::Comment | State::Data => Kind::Skipped,
            State::Instruction => Kind::Instruction,
            State::Declaration => Kind::Declaration,
            State::Name | State::Tag if self.is_end_tag() => Kind::End,
            State::Name | State::Tag if self.last == b'/' => Kind::Empty,
            State::Name | State::Tag => Kind::Start,
            State::Begin | State::Opened | State::Bang | State::Broken => Kind::Broken,
        }
    }

    /// Returns the name of an element, with its prefix.
    pub(super) fn name(&self) -> &[u8] {
        self.name.strip_prefix(b"/").unwrap_or(&self.name)
    }

    /// Returns whether it begins with `</`.
    pub(super) fn is_end_tag(&self) -> bool {
        self.name.first() == Some(&b'/')
    }

    fn next(&mut self, byte: u8) -> Step {
        match self.state {
            State::Begin => self.state = State::Opened,
            State::Opened => match byte {
                b'!' => self.state = State::Bang,
                b'?' => self.state = State::Instruction,
                b'/' => self.begin_name(byte),
                _ if is_name_start(byte) => self.begin_name(byte),
                _ => return self.broken(),
            },
            State::Bang => return self.bang(byte),
            State::Comment => return self.ends_after(byte, b'-', 2),
            State::Data => return self.ends_after(byte, b']', 2),
            State::Instruction => return self.ends_after(byte, b'?', 1),
            State::Name | State::Tag => return self.tag(byte),
            State::Declaration | State::Broken => return Step::EndBefore,
        }
        Step::Continue
    }

    fn begin_name(&mut self, byte: u8) {
        self.state = State::Name;
        self.name.push(byte);
    }

    fn broken(&mut self) -> Step {
        self.state = State::Broken;
        Step::EndBefore
    }

    fn bang(&mut self, byte: u8) -> Step {
        self.name.push(byte);
        match &*self.name {
            b"--" => self.state = State::Comment,
            b"[CDATA[" => self.state = State::Data,
            part if b"--".starts_with(part) || b"[CDATA[".starts_with(part) => {}
            _ => {
                self.state = State::Declaration;
                return Step::End;
            }
        }
        Step::Continue
    }

    /// Ends at a `>` after so many of a byte.
    fn ends_after(&mut self, byte: u8, before: u8, count: usize) -> Step {
        if byte == b'>' && self.run >= count {
            return Step::End;
        }
        self.run = if byte == before { self.run + 1 } else { 0 };
        Step::Continue
    }

    fn tag(&mut self, byte: u8) -> Step {
        if byte == b'<' {
            return self.broken();
        }
        if let Some(quote) = self.quote {
            if byte == quote {
                self.quote = None;
            }
            return Step::Continue;
        }
        match byte {
            b'>' if self.name() == b"" => return self.broken(),
            b'>' => return Step::End,
            b'"' | b'\'' => self.quote = Some(byte),
            _ if self.state == State::Tag => {}
            b'/' => self.state = State::Tag,
            _ if byte.is_ascii_whitespace() => self.state = State::Tag,
            _ if self.name.len() <= LONGEST_NAME => self.name.push(byte),
            _ => {}
        }
        Step::Continue
    }
}

fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b':') || !byte.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the markup that `text` begins with, also if it comes in parts.
    fn check(text: &str, expected: (&str, Kind, &str)) {
        for split in 0..text.len() {
            let (first, second) = text.as_bytes().split_at(split);
            let mut markup = Markup::new();
            let end = markup
                .end_in(first)
                .or_else(|| Some(split + markup.end_in(second)?))
                .unwrap();
            let name = String::from_utf8_lossy(markup.name()).into_owned();
            assert_eq!((&text[..end], markup.kind(), &*name), expected, "{text} {split}");
        }
    }

    #[test]
    fn the_end_of_markup_is_found() {
        check("<a>x", ("<a>", Kind::Start, "a"));
        check(
            "<a b='>' c=\"/>'\" >x",
            ("<a b='>' c=\"/>'\" >", Kind::Start, "a"),
        );
        check("<o:a/>x", ("<o:a/>", Kind::Empty, "o:a"));
        check("<a b=\"1\" />", ("<a b=\"1\" />", Kind::Empty, "a"));
        check("<a b='/'>", ("<a b='/'>", Kind::Start, "a"));
        check("</a\n>x", ("</a\n>", Kind::End, "a"));
        check("<größe>", ("<größe>", Kind::Start, "größe"));
        check("<!-- <a> -> --->x", ("<!-- <a> -> --->", Kind::Skipped, "--"));
        check("<!--> -->x", ("<!--> -->", Kind::Skipped, "--"));
        check(
            "<![CDATA[<a>]]]>]]>",
            ("<![CDATA[<a>]]]>", Kind::Skipped, "[CDATA["),
        );
        check("<?xml v?x='>'?>x", ("<?xml v?x='>'?>", Kind::Instruction, ""));
        check("<?>?>", ("<?>?>", Kind::Instruction, ""));
    }

    #[test]
    fn broken_markup_ends_before_the_next_one() {
        check("<!DOCTYPE a [", ("<!D", Kind::Declaration, "D"));
        check("< a>", ("<", Kind::Broken, ""));
        check("<<a>", ("<", Kind::Broken, ""));
        check("<1>", ("<", Kind::Broken, ""));
        check("<a b='1<c>", ("<a b='1", Kind::Broken, "a"));
        check("</a<b>", ("</a", Kind::Broken, "a"));
        check("</>", ("</", Kind::Broken, ""));
    }
}
