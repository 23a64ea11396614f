//! The bodies of fuzz targets for the readers of columnar files and sheets: see `fuzz/README.md`.

mod files;

use batch_items::file::{FileItemReader, Format, Items, ReadPosition};
use batch_items::{Record, RecordError, ResourceError};

use self::files::target;

target! {
    #[cfg(feature = "parquet")]
    parquet = ParquetItemReader, ["", "record.field=number"]
}
target! {
    #[cfg(feature = "parquet")]
    arrow = ArrowItemReader, ["", "record.field=number"]
}
target! {
    #[cfg(feature = "xlsx")]
    xlsx = XlsxItemReader, [
        "max.unpacked.size=1000000",
        "max.unpacked.size=1000000\nheader=false\ntrim=true\nskip.rows=1\nif.no.result=empty\nraw.field=raw",
    ]
}

/// A sheet of a workbook: a mutation of a workbook mostly ends at the checksum of its archive.
///
/// # Panics
/// If the reader is at fault.
#[cfg(feature = "xlsx")]
#[doc(hidden)]
pub fn sheet(data: &[u8]) {
    if let Some((choice, sheet)) = data.split_first() {
        let workbook = workbook(sheet).unwrap_or_else(|error| panic!("{error}"));
        xlsx(&[&[*choice], &*workbook].concat());
    }
}

#[cfg(feature = "xlsx")]
fn workbook(sheet: &[u8]) -> zip::result::ZipResult<Vec<u8>> {
    use std::io::{Cursor, Write};

    let files: [(&str, &[u8]); 5] = [
        (
            "xl/workbook.xml",
            b"<workbook><sheets><sheet name=\"a\" sheetId=\"1\" r:id=\"r1\"/></sheets></workbook>",
        ),
        (
            "xl/_rels/workbook.xml.rels",
            b"<Relationships><Relationship Id=\"r1\" Target=\"worksheets/a.xml\" \
              Type=\"http://schemas.openxmlformats.org/officeDocument/2006/relationships/worksheet\"/></Relationships>",
        ),
        (
            "xl/sharedStrings.xml",
            b"<sst><si><t>id</t></si><si><r><t>a</t></r><r><t> b</t></r></si></sst>",
        ),
        (
            "xl/styles.xml",
            b"<styleSheet><cellXfs><xf numFmtId=\"0\"/><xf numFmtId=\"14\"/><xf numFmtId=\"21\"/></cellXfs></styleSheet>",
        ),
        ("xl/worksheets/a.xml", sheet),
    ];
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in files {
        archive.start_file(name, zip::write::SimpleFileOptions::default())?;
        archive.write_all(content)?;
    }
    Ok(archive.finish()?.into_inner())
}

#[cfg(test)]
mod mutate;

#[cfg(test)]
mod tests {
    use super::mutate::replay;

    // Spec: INPUT-01, INPUT-06
    #[cfg(feature = "parquet")]
    #[test]
    fn parquet_is_read_again_from_each_checkpoint() {
        replay("parquet", 200, super::parquet);
    }

    // Spec: INPUT-01, INPUT-06
    #[cfg(feature = "parquet")]
    #[test]
    fn arrow_is_read_again_from_each_checkpoint() {
        replay("arrow", 300, super::arrow);
    }

    // Spec: INPUT-01, INPUT-06
    #[cfg(feature = "xlsx")]
    #[test]
    fn workbooks_are_read_again_from_each_checkpoint() {
        replay("xlsx", 200, super::xlsx);
    }

    // Spec: INPUT-01, INPUT-06
    #[cfg(feature = "xlsx")]
    #[test]
    fn sheets_are_read_again_from_each_checkpoint() {
        replay("sheet", 300, super::sheet);
    }
}
