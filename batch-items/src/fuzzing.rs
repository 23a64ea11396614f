//! The bodies of fuzz targets for the readers of files: see `fuzz/README.md`.

mod files;

use self::files::target;
use crate::error::{RecordError, ResourceError};
use crate::file::{FileItemReader, Format, Items, ReadPosition};
use crate::record::Record;

target! { csv = DelimitedItemReader, [
    "",
    "header=false\nraw.field=raw\nencoding=windows-1252",
    "encoding=utf-16\nraw.field=raw",
    "delimiter=tab\nquote=none\nstrict=false\nskip.lines=1",
    "escape=\\\ncomment=#\ntrim=true\nline.field=line",
    "delimiter=;\nencoding=shift_jis\nmax.record.length=40\nrecord.field=number",
    "columns=a,b\nstrict=false\nencoding=windows-1252\nraw.field=raw",
] }
target! { fixed_width = FixedWidthItemReader, [
    "columns=a 1-3, b 4-8, c 9-10",
    "columns=a 1-3, b 4-8, c 9-10\nencoding=shift_jis\nstrict=false\ntrim=false\nraw.field=raw",
    "columns=a 1, b 3-4\nencoding=utf-16\ncomment=#\nblank.lines=read",
] }
target! { pattern = PatternItemReader, [
    "pattern=(?<a>[^ ]*) (?<b>.*)",
    "pattern=(?<a>\\d+)(?<b>;\\w+)?\nif.no.match=skip\nraw.field=raw",
    "pattern=(?<a>.+)\nencoding=utf-16\nskip.lines=1\ncomment=#",
] }
target! { json_lines = JsonLinesItemReader, [
    "",
    "encoding=utf-16\nraw.field=raw",
    "max.record.length=60\nskip.lines=1\nline.field=line",
] }
target! { json_array = JsonArrayItemReader, [
    "",
    "encoding=utf-16\nraw.field=raw",
    "max.record.length=60\nrecord.field=number",
] }
target! { xml = XmlItemReader, [
    "element=row",
    "element=row\nencoding=utf-16",
    "element=row\nraw.field=raw\nmax.record.length=200",
] }
target! { gzip = JsonLinesItemReader, [
    "compression=gzip",
    "compression=gzip\nmax.record.length=60\nskip.lines=1\nraw.field=raw",
] }
target! {
    #[cfg(feature = "zstd")]
    zstd = JsonLinesItemReader, [
        "compression=zstd",
        "compression=zstd\nmax.record.length=60\nskip.lines=1\nraw.field=raw",
    ]
}

#[cfg(test)]
mod mutate;

#[cfg(test)]
mod tests {
    use super::mutate::replay;

    // Spec: INPUT-01, INPUT-02, INPUT-03, INPUT-04
    #[test]
    fn delimited_rows_are_read_again_from_each_checkpoint() {
        replay("csv", 1_000, super::csv);
    }

    // Spec: INPUT-01, INPUT-02, INPUT-03, INPUT-04
    #[test]
    fn lines_of_fixed_widths_are_read_again_from_each_checkpoint() {
        replay("fixed_width", 1_000, super::fixed_width);
    }

    // Spec: INPUT-01, INPUT-02, INPUT-03, INPUT-04
    #[test]
    fn lines_of_a_pattern_are_read_again_from_each_checkpoint() {
        replay("pattern", 50, super::pattern);
    }

    // Spec: INPUT-01, INPUT-02, INPUT-03, INPUT-04
    #[test]
    fn json_lines_are_read_again_from_each_checkpoint() {
        replay("json_lines", 500, super::json_lines);
    }

    // Spec: INPUT-01, INPUT-03, INPUT-04
    #[test]
    fn a_json_array_is_read_again_from_each_checkpoint() {
        replay("json_array", 300, super::json_array);
    }

    // Spec: INPUT-01, INPUT-03, INPUT-04
    #[test]
    fn xml_elements_are_read_again_from_each_checkpoint() {
        replay("xml", 300, super::xml);
    }

    // Spec: INPUT-01, INPUT-03
    #[test]
    fn gzip_is_read_again_from_each_checkpoint() {
        replay("gzip", 300, super::gzip);
    }

    // Spec: INPUT-01, INPUT-03
    #[cfg(feature = "zstd")]
    #[test]
    fn zstd_is_read_again_from_each_checkpoint() {
        replay("zstd", 300, super::zstd);
    }
}
