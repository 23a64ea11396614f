//! Writes the picture as SVG.

use std::fmt::Write as _;

use super::layers::Route;
use super::place::{Line, Look, Scene, Shape, Writing};
use super::{ExitKind, NodeKind};

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

/// Returns the whole file.
pub(super) fn write(title: &str, scene: &Scene) -> String {
    let (width, height) = (Number(scene.width.ceil()), Number(scene.height.ceil()));
    let mut svg = Svg(String::new());
    svg.line(format_args!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" role=\"img\">"
    ));
    svg.line(format_args!(
        "<title>{}</title>",
        Escaped(&format!("job {title}"))
    ));
    svg.line(format_args!("<style>{STYLE}</style>"));
    svg.line(format_args!("<defs>"));
    for line in LINES {
        let class = class_of(line);
        svg.line(format_args!(
            "<marker id=\"tip-{class}\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" \
             markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path class=\"{class} tip\" d=\"M0 1 L10 5 L0 9 z\"/></marker>"
        ));
    }
    svg.line(format_args!("</defs>"));
    svg.shapes(&scene.shapes);
    svg.line(format_args!("</svg>"));
    svg.0
}

struct Svg(String);

impl Svg {
    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a `String` cannot fail.
        let _ = writeln!(self.0, "{text}");
    }

    fn shapes(&mut self, shapes: &[Shape]) {
        for shape in shapes {
            self.shape(shape);
        }
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Moved(x, y, shapes) => {
                if shapes.is_empty() {
                    return;
                }
                self.line(format_args!(
                    "<g transform=\"translate({} {})\">",
                    Number(*x),
                    Number(*y)
                ));
                self.shapes(shapes);
                self.line(format_args!("</g>"));
            }
            Shape::Element(kind, pointer, shapes) => {
                self.line(format_args!(
                    "<g class=\"of-{}\"><title>{}</title>",
                    kind.word(),
                    Escaped(pointer)
                ));
                self.shapes(shapes);
                self.line(format_args!("</g>"));
            }
            Shape::Rectangle(look, x, y, width, height) => {
                let round = if *look == Look::Step { 6 } else { 10 };
                self.line(format_args!(
                    "<rect class=\"{}\" {} rx=\"{round}\"/>",
                    look_of(*look),
                    Area(*x, *y, *width, *height)
                ));
            }
            Shape::Diamond(look, half, height) => {
                let (half, middle, height) = (Number(*half), Number(height / 2.0), Number(*height));
                self.line(format_args!(
                    "<path class=\"{}\" d=\"M0 0 L{half} {middle} L0 {height} L-{half} {middle} z\"/>",
                    look_of(*look)
                ));
            }
            Shape::Exit(kind, x, y, width, height) => self.exit(*kind, *x, *y, *width, *height),
            Shape::Text(writing, x, y, text) => {
                let class = match writing {
                    Writing::Name => "name",
                    Writing::Detail => "detail",
                    Writing::Title => "title",
                    Writing::Exit => "word",
                };
                self.text(class, *x, *y, text);
            }
            Shape::Label(line, x, y, width, text) => {
                self.line(format_args!(
                    "<rect class=\"{} pill\" {} rx=\"9\"/>",
                    class_of(*line),
                    Area(x - width / 2.0, y - 9.0, *width, 18.0)
                ));
                self.text("on", *x, y + 4.0, text);
            }
            Shape::Arrow(line, route) => {
                let class = class_of(*line);
                let is_sideways = matches!(line, Line::Exit(_));
                self.line(format_args!(
                    "<path class=\"{class} line\" d=\"{}\" marker-end=\"url(#tip-{class})\"/>",
                    Way(route, is_sideways)
                ));
            }
            Shape::Begin(x, y) => self.line(format_args!(
                "<circle class=\"mark\" cx=\"{}\" cy=\"{}\" r=\"6\"/>",
                Number(*x),
                Number(*y)
            )),
            Shape::End(x, y) => {
                let (x, y) = (Number(*x), Number(*y));
                self.line(format_args!(
                    "<circle class=\"ring\" cx=\"{x}\" cy=\"{y}\" r=\"5.5\"/>"
                ));
                self.line(format_args!(
                    "<circle class=\"mark\" cx=\"{x}\" cy=\"{y}\" r=\"3\"/>"
                ));
            }
            Shape::Bar(x, y, width) => self.line(format_args!(
                "<rect class=\"mark\" {} rx=\"2\"/>",
                Area(*x, *y, *width, 5.0)
            )),
        }
    }

    /// Each kind has a shape of its own, so that colors are not required.
    fn exit(&mut self, kind: ExitKind, x: f64, y: f64, width: f64, height: f64) {
        let class = kind.word();
        match kind {
            ExitKind::End | ExitKind::Again => self.line(format_args!(
                "<rect class=\"{class} exit\" {} rx=\"{}\"/>",
                Area(x, y, width, height),
                Number(height / 2.0)
            )),
            ExitKind::Fail => self.line(format_args!(
                "<rect class=\"{class} exit\" {}/>",
                Area(x, y, width, height)
            )),
            ExitKind::Stop => {
                let (left, right) = (Number(x), Number(x + width));
                let (inner_left, inner_right) = (Number(x + 8.0), Number(x + width - 8.0));
                let (top, middle, bottom) = (Number(y), Number(y + height / 2.0), Number(y + height));
                self.line(format_args!(
                    "<path class=\"{class} exit\" d=\"M{inner_left} {top} L{inner_right} {top} L{right} {middle} \
                     L{inner_right} {bottom} L{inner_left} {bottom} L{left} {middle} z\"/>"
                ));
            }
        }
    }

    fn text(&mut self, class: &str, x: f64, y: f64, text: &str) {
        self.line(format_args!(
            "<text class=\"{class}\" x=\"{}\" y=\"{}\">{}</text>",
            Number(x),
            Number(y),
            Escaped(text)
        ));
    }
}

fn look_of(look: Look) -> &'static str {
    match look {
        Look::Step => NodeKind::Step.word(),
        Look::Decision => NodeKind::Decision.word(),
        Look::Flow => NodeKind::Flow.word(),
        Look::Split => NodeKind::Split.word(),
    }
}

fn class_of(line: Line) -> &'static str {
    match line {
        Line::Always => "always",
        Line::Next => "next",
        Line::Exit(kind) => kind.word(),
    }
}

/// A number with at most one decimal place, so that all platforms write the same file.
struct Number(f64);

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Avoids `-0`.
        let rounded = (self.0 * 10.0).round() / 10.0 + 0.0;
        write!(f, "{rounded}")
    }
}

/// Position and size of a rectangle.
struct Area(f64, f64, f64, f64);

impl std::fmt::Display for Area {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (x, y, width, height) = (Number(self.0), Number(self.1), Number(self.2), Number(self.3));
        write!(f, "x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"")
    }
}

/// The legs of a route, joined by curves; `true` for horizontal legs.
struct Way<'a>(&'a Route, bool);

impl std::fmt::Display for Way<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
                Some((last, end)) if (last - across).abs() < 0.05 => {
                    let _ = end;
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

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
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
