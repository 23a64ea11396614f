//! A workbook as an archive. What precedes and follows its sheet depends on the settings only, so the rows are appended to a file.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::cells::append_text;
use super::columns::Column;

const MAIN: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
const RELATION: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
const PACKAGE: &str = "http://schemas.openxmlformats.org/package/2006";
const TYPE: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml";
const DECLARATION: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n";
const SHEET: &str = "xl/worksheets/sheet1.xml";
/// The first number of a format that is not built in.
const FIRST_FORMAT: usize = 164;

/// The beginning of a workbook, up to the rows.
pub(super) struct Beginning {
    /// The parts before the sheet, and the beginning of its entry.
    pub(super) bytes: Vec<u8>,
    /// The beginning of the sheet.
    pub(super) sheet: String,
    /// The entries in the directory of the archive.
    directory: Vec<u8>,
    entries: u16,
    /// The position of the sheet in the file.
    offset: usize,
}

/// The size of a sheet.
pub(super) struct SheetSize {
    pub(super) crc: u32,
    /// In the file, without its beginning and its end.
    pub(super) packed: u64,
    pub(super) unpacked: u64,
}

impl Beginning {
    pub(super) fn new(name: &str, columns: &[Column]) -> Self {
        let mut beginning = Self {
            bytes: Vec::new(),
            sheet: sheet(columns),
            directory: Vec::new(),
            entries: 0,
            offset: 0,
        };
        for (name, text) in [
            ("[Content_Types].xml", content_types()),
            ("_rels/.rels", relations(&[("officeDocument", "xl/workbook.xml")])),
            ("xl/workbook.xml", workbook(name)),
            (
                "xl/_rels/workbook.xml.rels",
                relations(&[("worksheet", "worksheets/sheet1.xml"), ("styles", "styles.xml")]),
            ),
            ("xl/styles.xml", styles(columns)),
        ] {
            beginning.add_part(name, &text);
        }
        beginning.offset = beginning.bytes.len();
        let entry = Entry::of_sheet(0, 0, 0);
        beginning.bytes.extend(entry.header());
        beginning
    }

    fn add_part(&mut self, name: &'static str, text: &str) {
        let size = text.len() as u32;
        let entry = Entry {
            name,
            flags: 0,
            method: 0,
            crc: crc32fast::hash(text.as_bytes()),
            packed: size,
            unpacked: size,
        };
        self.directory.extend(entry.in_directory(self.bytes.len() as u32));
        self.entries += 1;
        self.bytes.extend(entry.header());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// Returns what follows the sheet, which `deflate` has compressed with its [`SHEET_END`].
    ///
    /// # Errors
    /// If an archive cannot have a part of this size.
    pub(super) fn end(&self, size: &SheetSize) -> Result<Vec<u8>, String> {
        let end_of_file = self.bytes.len() as u64 + size.packed + LAST_BLOCK.len() as u64 + DESCRIPTOR;
        let start = check_length(end_of_file)?;
        let unpacked = check_length(size.unpacked)?;
        let packed = size.packed as u32 + LAST_BLOCK.len() as u32;
        let entry = Entry::of_sheet(size.crc, packed, unpacked);
        let mut bytes = LAST_BLOCK.to_vec();
        bytes.extend(b"PK\x07\x08");
        bytes.extend([size.crc, packed, unpacked].map(u32::to_le_bytes).concat());
        let mut directory = self.directory.clone();
        directory.extend(entry.in_directory(self.offset as u32));
        let entries = self.entries + 1;
        bytes.extend(&directory);
        bytes.extend(b"PK\x05\x06\0\0\0\0");
        bytes.extend([entries, entries].map(u16::to_le_bytes).concat());
        bytes.extend([directory.len() as u32, start].map(u32::to_le_bytes).concat());
        bytes.extend([0, 0]);
        Ok(bytes)
    }
}

/// Fails if an archive cannot have a part, or a position, of this length.
pub(super) fn check_length(length: u64) -> Result<u32, String> {
    u32::try_from(length).map_err(|_| {
        "the sheet has more than 4 GiB, and a workbook cannot hold it; set `max.items.per.file`".to_owned()
    })
}

/// The end of the sheet, after its rows.
pub(super) const SHEET_END: &str = "</sheetData></worksheet>";
/// The empty block that ends compressed data.
const LAST_BLOCK: [u8; 2] = [3, 0];
/// The length of the data descriptor, which follows an entry and has its sizes.
const DESCRIPTOR: u64 = 16;

/// Compresses a piece of the sheet. It ends with a whole byte, so that another piece, which does not refer to this one, can follow.
pub(super) fn deflate(piece: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(piece)?;
    encoder.flush()?;
    Ok(std::mem::take(encoder.get_mut()))
}

/// A part in the archive.
struct Entry {
    name: &'static str,
    flags: u16,
    method: u16,
    crc: u32,
    packed: u32,
    unpacked: u32,
}

impl Entry {
    /// The sheet is deflated, and its size follows it.
    fn of_sheet(crc: u32, packed: u32, unpacked: u32) -> Self {
        Self {
            name: SHEET,
            flags: 8,
            method: 8,
            crc,
            packed,
            unpacked,
        }
    }

    fn fields(&self) -> Vec<u8> {
        /// 1980-01-01, the first date that an archive can have: equal rows give equal files.
        const TIME: [u16; 2] = [0, 0x21];
        const VERSION: u16 = 20;
        let [time, date] = TIME;
        let mut fields = [VERSION, self.flags, self.method, time, date]
            .map(u16::to_le_bytes)
            .concat();
        fields.extend(
            [self.crc, self.packed, self.unpacked]
                .map(u32::to_le_bytes)
                .concat(),
        );
        fields.extend((self.name.len() as u16).to_le_bytes());
        fields.extend([0, 0]);
        fields
    }

    fn header(&self) -> Vec<u8> {
        [b"PK\x03\x04", &*self.fields(), self.name.as_bytes()].concat()
    }

    fn in_directory(&self, offset: u32) -> Vec<u8> {
        let fields = self.fields();
        // No comment, disk 0, no attributes.
        let others = [0; 10];
        [
            b"PK\x01\x02\x14\0",
            &*fields,
            &others,
            &offset.to_le_bytes(),
            self.name.as_bytes(),
        ]
        .concat()
    }
}

fn content_types() -> String {
    format!(
        "{DECLARATION}<Types xmlns=\"{PACKAGE}/content-types\">\
         <Default Extension=\"rels\" ContentType=\"application/vnd.openxmlformats-package.relationships+xml\"/>\
         <Default Extension=\"xml\" ContentType=\"application/xml\"/>\
         <Override PartName=\"/xl/workbook.xml\" ContentType=\"{TYPE}.sheet.main+xml\"/>\
         <Override PartName=\"/{SHEET}\" ContentType=\"{TYPE}.worksheet+xml\"/>\
         <Override PartName=\"/xl/styles.xml\" ContentType=\"{TYPE}.styles+xml\"/></Types>"
    )
}

fn relations(targets: &[(&str, &str)]) -> String {
    let mut xml = format!("{DECLARATION}<Relationships xmlns=\"{PACKAGE}/relationships\">");
    for (number, (kind, target)) in (1..).zip(targets) {
        let _ = write!(
            xml,
            "<Relationship Id=\"rId{number}\" Type=\"{RELATION}/{kind}\" Target=\"{target}\"/>"
        );
    }
    xml + "</Relationships>"
}

fn workbook(sheet: &str) -> String {
    let mut name = String::new();
    append_text(sheet, &mut name);
    format!(
        "{DECLARATION}<workbook xmlns=\"{MAIN}\" xmlns:r=\"{RELATION}\"><sheets>\
         <sheet name=\"{name}\" sheetId=\"1\" r:id=\"rId1\"/></sheets></workbook>"
    )
}

/// Returns the general style, and one for each format of a column.
fn styles(columns: &[Column]) -> String {
    let mut formats: Vec<&str> = Vec::new();
    for format in columns.iter().filter_map(|column| column.format.as_deref()) {
        if !formats.contains(&format) {
            formats.push(format);
        }
    }
    let (mut codes, mut cells) = (String::new(), String::new());
    for (number, format) in (FIRST_FORMAT..).zip(&formats) {
        let _ = write!(codes, "<numFmt numFmtId=\"{number}\" formatCode=\"");
        append_text(format, &mut codes);
        codes.push_str("\"/>");
        let _ = write!(
            cells,
            "<xf numFmtId=\"{number}\" fontId=\"0\" fillId=\"0\" borderId=\"0\" xfId=\"0\" applyNumberFormat=\"1\"/>"
        );
    }
    let formats = match formats.len() {
        0 => String::new(),
        count => format!("<numFmts count=\"{count}\">{codes}</numFmts>"),
    };
    let count = columns.iter().map(|column| column.style).max().unwrap_or(0) + 1;
    let general = "numFmtId=\"0\" fontId=\"0\" fillId=\"0\" borderId=\"0\"";
    format!(
        "{DECLARATION}<styleSheet xmlns=\"{MAIN}\">{formats}\
         <fonts count=\"1\"><font><sz val=\"11\"/><name val=\"Calibri\"/><family val=\"2\"/></font></fonts>\
         <fills count=\"2\"><fill><patternFill patternType=\"none\"/></fill><fill><patternFill patternType=\"gray125\"/></fill></fills>\
         <borders count=\"1\"><border><left/><right/><top/><bottom/><diagonal/></border></borders>\
         <cellStyleXfs count=\"1\"><xf {general}/></cellStyleXfs>\
         <cellXfs count=\"{count}\"><xf {general} xfId=\"0\"/>{cells}</cellXfs>\
         <cellStyles count=\"1\"><cellStyle name=\"Normal\" xfId=\"0\" builtinId=\"0\"/></cellStyles></styleSheet>"
    )
}

fn sheet(columns: &[Column]) -> String {
    let mut widths = String::new();
    for (number, column) in (1..).zip(columns) {
        if let Some(width) = column.kind.width() {
            let _ = write!(
                widths,
                "<col min=\"{number}\" max=\"{number}\" width=\"{width}\" customWidth=\"1\"/>"
            );
        }
    }
    if !widths.is_empty() {
        widths = format!("<cols>{widths}</cols>");
    }
    format!("{DECLARATION}<worksheet xmlns=\"{MAIN}\">{widths}<sheetData>")
}

#[cfg(test)]
mod tests {
    use super::*;

    // Spec: ITEM-VALUE-13
    #[test]
    fn a_sheet_has_a_largest_length() {
        assert_eq!(check_length(4_294_967_295), Ok(u32::MAX));
        assert!(check_length(4_294_967_296).is_err());
    }
}
