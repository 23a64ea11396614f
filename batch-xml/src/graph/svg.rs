//! Draws shapes as SVG.

use std::fmt::{self, Write as _};

use super::layers::Route;
use super::{ElementMark, ExitKind};
use crate::model::ElementKind;

/// Colors that are distinguishable on light and dark pages; every text is on a filled shape. Classes of shapes are
/// `step`, `decision`, `flow` and `split`, of lines `always`, `next`, `end`, `fail`, `stop` and `again`.
const STYLE: &str = "
text { font-family: system-ui, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif; font-size: 12px; fill: #1f2328; text-anchor: middle; }
.name { font-size: 14px; font-weight: 600; }
.detail { fill: #57606a; }
.title { font-size: 13px; font-weight: 600; text-anchor: start; }
.step { fill: #ddeeff; stroke: #3b7dc4; stroke-width: 1.3; }
.decision { fill: #fff3c4; stroke: #b7860b; stroke-width: 1.3; }
.flow { fill: #f4f5f7; stroke: #8b949e; stroke-width: 1.2; }
.split { fill: #e6e9ee; stroke: #6e7781; stroke-width: 1.4; stroke-dasharray: 7 4; }
.line { fill: none; stroke-width: 1.6; }
.always.line { stroke: #7a838d; } .always.tip, .mark { fill: #7a838d; }
.next.line { stroke: #2f81d6; } .next.tip { fill: #2f81d6; }
.end.line { stroke: #2da44e; } .end.tip { fill: #2da44e; }
.fail.line { stroke: #d1434b; } .fail.tip { fill: #d1434b; }
.stop.line { stroke: #c4701c; } .stop.tip { fill: #c4701c; }
.again.line { stroke: #8250df; } .again.tip { fill: #8250df; }
.pill { fill: #ffffff; stroke-width: 1; }
.next.pill { stroke: #2f81d6; } .end.pill { stroke: #2da44e; } .fail.pill { stroke: #d1434b; }
.stop.pill { stroke: #c4701c; } .again.pill { stroke: #8250df; }
.exit { stroke-width: 1.5; }
.end.exit { fill: #d9f5e0; stroke: #2da44e; } .fail.exit { fill: #fde2e3; stroke: #d1434b; }
.stop.exit { fill: #fdebd3; stroke: #c4701c; } .again.exit { fill: #ece3fb; stroke: #8250df; }
.ring { fill: none; stroke: #7a838d; stroke-width: 1.6; }
";

const LINES: [Line; 6] = [
    Line::Always,
    Line::Next,
    Line::Exit(ExitKind::End),
    Line::Exit(ExitKind::Fail),
    Line::Exit(ExitKind::Stop),
    Line::Exit(ExitKind::Again),
];

/// The whole picture.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) width: f64,
    pub(super) height: f64,
    /// The picture; coordinates count from the upper left.
    pub(super) picture: Picture,
}

/// Where the style sheet is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Included,
    OfThePage,
}

/// Returns the whole file, or the element of a page.
pub(super) fn write(title: &str, scene: &Scene, style: Style) -> String {
    let (width, height) = (Number(scene.width.ceil()), Number(scene.height.ceil()));
    let mut svg = Picture::default();
    // A group has links in it, which an image hides from screen readers.
    let (class, role) = match style {
        Style::Included => ("", "img"),
        Style::OfThePage => (" class=\"job-graph\"", "group"),
    };
    writeln!(
        svg,
        "<svg xmlns=\"http://www.w3.org/2000/svg\"{class} width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"{role}\">"
    );
    writeln!(svg, "<title>job {}</title>", Escaped(title));
    if style == Style::Included {
        writeln!(svg, "<style>{STYLE}</style>");
    }
    writeln!(svg, "<defs>");
    for class in LINES.map(Line::class) {
        writeln!(
            svg,
            "<marker id=\"tip-{class}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" \
             markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"{class} tip\" d=\"M0 1 L10 5 L0 9 z\"/></marker>"
        );
    }
    writeln!(svg, "</defs>\n{}</svg>", scene.picture.0);
    svg.0
}

/// Lines by their condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// The attribute `next`, or an implicit edge.
    Always,
    /// The element `next`.
    Next,
    Exit(ExitKind),
}

impl Line {
    fn class(self) -> &'static str {
        match self {
            Line::Always => "always",
            Line::Next => "next",
            Line::Exit(kind) => kind.word(),
        }
    }
}

/// A part of the picture, one shape on each line. Coordinates count from the middle of the upper edge of its parent.
#[derive(Debug, Default)]
pub(super) struct Picture(String);

impl Picture {
    /// Lets `write!` append text.
    fn write_fmt(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _ = self.0.write_fmt(text);
    }

    pub(super) fn append(&mut self, other: Picture) {
        self.0.push_str(&other.0);
    }

    /// Draws a part at another place.
    pub(super) fn moved(&mut self, x: f64, y: f64, part: Picture) {
        if !part.0.is_empty() {
            let (x, y) = (Number(x), Number(y));
            writeln!(self, "<g transform=\"translate({x} {y})\">\n{}</g>", part.0);
        }
    }

    /// Makes the picture represent an element, with a tooltip.
    pub(super) fn of_element(self, kind: ElementKind, tooltip: &str, mark: Option<&ElementMark>) -> Picture {
        let (kind, tooltip, picture) = (kind.as_str(), Escaped(tooltip), self.0);
        let Some(mark) = mark else {
            return Picture(format!(
                "<g class=\"of-{kind}\"><title>{tooltip}</title>\n{picture}</g>\n"
            ));
        };
        let class = Escaped(&mark.class);
        let marked =
            format!("<g class=\"element of-{kind} {class}\"><title>{tooltip}</title>\n{picture}</g>\n");
        Picture(match &mark.link {
            Some(link) => format!("<a href=\"{}\">\n{marked}</a>\n", Escaped(link)),
            None => marked,
        })
    }

    /// Draws the box of a step, flow or split.
    pub(super) fn rectangle(&mut self, kind: ElementKind, area: Area) {
        let class = kind.as_str();
        let round = if kind == ElementKind::Step { 6 } else { 10 };
        writeln!(self, "<rect class=\"{class}\" {area} rx=\"{round}\"/>");
    }

    /// Draws the diamond of a decision around the middle.
    pub(super) fn diamond(&mut self, half: f64, height: f64) {
        let class = ElementKind::Decision.as_str();
        let (half, middle, height) = (Number(half), Number(height / 2.0), Number(height));
        writeln!(
            self,
            "<path class=\"{class}\" d=\"M0 0 L{half} {middle} L0 {height} L-{half} {middle} z\"/>"
        );
    }

    /// Draws the end of a transition out of the job. Each kind has its own shape, so that colors are not required.
    pub(super) fn exit(&mut self, kind: ExitKind, area: Area) {
        let class = kind.word();
        match kind {
            ExitKind::End | ExitKind::Again => {
                let round = Number(area.height / 2.0);
                writeln!(self, "<rect class=\"{class} exit\" {area} rx=\"{round}\"/>");
            }
            ExitKind::Fail => writeln!(self, "<rect class=\"{class} exit\" {area}/>"),
            ExitKind::Stop => {
                let [left, inner_left] = [area.x, area.x + 8.0].map(Number);
                let [inner_right, right] = [-8.0, 0.0].map(|inset| Number(area.x + area.width + inset));
                let [top, middle, bottom] = [0.0, 0.5, 1.0].map(|part| Number(area.y + part * area.height));
                writeln!(
                    self,
                    "<path class=\"{class} exit\" d=\"M{inner_left} {top} L{inner_right} {top} L{right} {middle} \
                     L{inner_right} {bottom} L{inner_left} {bottom} L{left} {middle} z\"/>"
                );
            }
        }
    }

    /// Draws a text at its start or middle, and its baseline.
    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        let (x, y, text) = (Number(x), Number(y), Escaped(text));
        writeln!(self, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>");
    }

    /// Draws the pattern of a transition around its middle.
    pub(super) fn label(&mut self, line: Line, x: f64, y: f64, width: f64, text: &str) {
        let (class, area) = (line.class(), Area::new(x - width / 2.0, y - 9.0, width, 18.0));
        writeln!(self, "<rect class=\"{class} pill\" {area} rx=\"9\"/>");
        self.text("on", x, y + 4.0, text);
    }

    /// Draws a line with an arrow at its end.
    pub(super) fn arrow(&mut self, line: Line, route: &Route) {
        let class = line.class();
        let way = Way(route, matches!(line, Line::Exit(_)));
        writeln!(
            self,
            "<path class=\"{class} line\" d=\"{way}\" marker-end=\"url(#tip-{class})\"/>"
        );
    }

    /// Draws the start of a job or flow around its middle.
    pub(super) fn begin(&mut self, x: f64, y: f64) {
        let (x, y) = (Number(x), Number(y));
        writeln!(self, "<circle class=\"mark\" cx=\"{x}\" cy=\"{y}\" r=\"6\"/>");
    }

    /// Draws the end of a job or flow around its middle.
    pub(super) fn end(&mut self, x: f64, y: f64) {
        let (x, y) = (Number(x), Number(y));
        writeln!(self, "<circle class=\"ring\" cx=\"{x}\" cy=\"{y}\" r=\"5.5\"/>");
        writeln!(self, "<circle class=\"mark\" cx=\"{x}\" cy=\"{y}\" r=\"3\"/>");
    }

    /// Draws the bar where the flows of a split part or meet.
    pub(super) fn bar(&mut self, left: f64, top: f64, width: f64) {
        let area = Area::new(left, top, width, 5.0);
        writeln!(self, "<rect class=\"mark\" {area} rx=\"2\"/>");
    }
}

/// A number with at most one decimal place, so that all platforms write the same file.
struct Number(f64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Avoids `-0`.
        let rounded = (self.0 * 10.0).round() / 10.0 + 0.0;
        write!(f, "{rounded}")
    }
}

/// Position and size of a rectangle.
#[derive(Clone, Copy)]
pub(super) struct Area {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

impl Area {
    pub(super) fn new(x: f64, y: f64, width: f64, height: f64) -> Area {
        Area { x, y, width, height }
    }
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, width, height] = [self.x, self.y, self.width, self.height].map(Number);
        write!(f, "x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"")
    }
}

/// The legs of a route, joined by curves; `true` for horizontal legs.
struct Way<'a>(&'a Route, bool);

impl fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Way(route, is_sideways) = self;
        let point = |across: f64, along: f64| {
            let (x, y) = if *is_sideways {
                (along, across)
            } else {
                (across, along)
            };
            format!("{} {}", Number(x), Number(y))
        };
        let mut before: Option<(f64, f64)> = None;
        for (across, from, to) in &route.legs {
            match before {
                None => write!(f, "M{}", point(*across, *from))?,
                Some((last, _)) if (last - across).abs() < 0.05 => {
                    write!(f, " L{}", point(*across, *from))?;
                }
                Some((last, end)) => {
                    let half = (end + from) / 2.0;
                    let (first, second, third) =
                        (point(last, half), point(*across, half), point(*across, *from));
                    write!(f, " C{first} {second} {third}")?;
                }
            }
            if from != to {
                write!(f, " L{}", point(*across, *to))?;
            }
            before = Some((*across, *to));
        }
        Ok(())
    }
}

/// Escaped text for XML, without characters that XML cannot hold.
struct Escaped<'a>(&'a str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '&' => f.write_str("&amp;")?,
                '"' => f.write_str("&quot;")?,
                '\t' | '\n' | '\r' => f.write_char(' ')?,
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                    f.write_char(char::REPLACEMENT_CHARACTER)?;
                }
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}
