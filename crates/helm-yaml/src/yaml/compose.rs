//! Builds a tree of nodes from parser events. An alias shares the node that it points to.

use std::collections::BTreeMap;
use std::rc::Rc;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, Span, Tag, options};

use super::node::{Content, Entries, Node};
use super::{MAX_DEPTH, TextPlace, YamlError, strictness};

/// Reads one document after another.
pub(super) struct Composer<'text> {
    text: &'text str,
    events: Parser<'text, granit_parser::StrInput<'text>>,
    anchors: BTreeMap<usize, Rc<Node>>,
}

type Spanned<'text> = (Event<'text>, TextPlace);

impl<'text> Composer<'text> {
    pub(super) fn new(text: &'text str) -> Result<Self, YamlError> {
        // A byte order mark may only be the first character. The parser counts columns from the next one.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        strictness::refuse_unprintable(text)?;
        strictness::refuse_unknown_directives(text)?;
        // Set explicitly, because another crate in the same build may switch on comment events by a feature.
        let options = options! { flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH, emit_comments: false };
        Ok(Self {
            text,
            events: Parser::new_from_str_with_options(text, options),
            anchors: BTreeMap::new(),
        })
    }

    /// The root of the next document, if there is one.
    pub(super) fn document(&mut self) -> Result<Option<Rc<Node>>, YamlError> {
        loop {
            match self.next()? {
                (Event::DocumentStart(..), _) => break,
                (Event::StreamEnd, _) => return Ok(None),
                _ => {}
            }
        }
        self.anchors.clear();
        let first = self.next()?;
        let root = self.node(first, 0)?;
        // An error behind the root is an error of the document, too.
        while !matches!(self.next()?.0, Event::DocumentEnd | Event::StreamEnd) {}
        Ok(Some(root))
    }

    fn next(&mut self) -> Result<Spanned<'text>, YamlError> {
        loop {
            match self.events.next() {
                Some(Ok((Event::Anchor(..), _))) => {}
                Some(Ok((event, span))) => return Ok((self.as_in_go(event, &span)?, span.start.into())),
                Some(Err(error)) => return Err(scan_error(&error)),
                None => return Ok((Event::StreamEnd, TextPlace { line: 1, column: 1 })),
            }
        }
    }

    fn node(&mut self, (event, place): Spanned<'text>, depth: usize) -> Result<Rc<Node>, YamlError> {
        if depth > MAX_DEPTH {
            return Err(YamlError::at(place, format!("nested deeper than {MAX_DEPTH} levels")));
        }
        let (anchor, content) = match event {
            Event::Alias(id) => {
                let target = self.anchors.get(&id);
                return target
                    .cloned()
                    .ok_or_else(|| YamlError::at(place, "an anchor contains itself"));
            }
            Event::Scalar(text, style, anchor, tag) => (
                anchor,
                Content::Scalar {
                    text: text.into_owned(),
                    plain: style == ScalarStyle::Plain,
                    tag: core_tag(tag.as_deref()),
                },
            ),
            Event::SequenceStart(_, anchor, _) => (anchor, Content::Sequence(self.items(depth)?)),
            Event::MappingStart(_, anchor, _) => (anchor, Content::Mapping(self.entries(depth)?)),
            // Any other event means an empty node.
            _ => (
                0,
                Content::Scalar {
                    text: String::new(),
                    plain: true,
                    tag: None,
                },
            ),
        };
        let node = Rc::new(Node { content, place });
        if anchor != 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        Ok(node)
    }

    /// Changes an event to what Go's readers make of the text.
    fn as_in_go(&self, mut event: Event<'text>, span: &Span) -> Result<Event<'text>, YamlError> {
        let place = TextPlace::from(span.start);
        if let Event::DocumentStart(_, version) = &event {
            strictness::refuse_newer(*version, place)?;
        }
        if let Event::Scalar(text, style, ..) = &mut event {
            let range = span.start.byte_offset().zip(span.end.byte_offset());
            let written = range.and_then(|(start, end)| self.text.get(start..end));
            let is_last = range.is_some_and(|(_, end)| end == self.text.len());
            match (*style, written) {
                (ScalarStyle::DoubleQuoted, Some(written)) => strictness::refuse_escaped_slash(written, place)?,
                (ScalarStyle::Literal | ScalarStyle::Folded, Some(written)) if is_last => {
                    strictness::end_as_written(text.to_mut(), written);
                }
                _ => {}
            }
        }
        Ok(event)
    }

    fn items(&mut self, depth: usize) -> Result<Vec<Rc<Node>>, YamlError> {
        let mut items = Vec::new();
        loop {
            let next = self.next()?;
            if matches!(next.0, Event::SequenceEnd | Event::StreamEnd) {
                return Ok(items);
            }
            items.push(self.node(next, depth + 1)?);
        }
    }

    fn entries(&mut self, depth: usize) -> Result<Entries, YamlError> {
        let mut entries = Entries::new();
        loop {
            let next = self.next()?;
            if matches!(next.0, Event::MappingEnd | Event::StreamEnd) {
                return Ok(entries);
            }
            let key = self.node(next, depth + 1)?;
            let next = self.next()?;
            entries.push((key, self.node(next, depth + 1)?));
        }
    }
}

/// The tag that decides the type of a scalar: the suffix of a core tag, or any other tag unchanged.
fn core_tag(tag: Option<&Tag>) -> Option<String> {
    let tag = tag?;
    match tag.suffix_in_namespace("tag:yaml.org,2002:") {
        Some(suffix) => Some(suffix.into_owned()),
        None => Some(format!("{}{}", tag.handle(), tag.suffix())),
    }
}

fn scan_error(error: &ScanError) -> YamlError {
    let place = (*error.marker()).into();
    let told = error.info();
    if told == "recursion limit exceeded" {
        return YamlError::at(place, format!("nested deeper than {MAX_DEPTH} levels"));
    }
    YamlError::at(place, told)
}
