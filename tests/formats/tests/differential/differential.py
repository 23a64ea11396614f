"""Writes the files and tables that our readers read, and compares what they found, and what our writers wrote.

    differential.py prepare|check PAIR FOLDER URL

Prints a line for each difference, or `MISSING` and the module that is not installed. A value is None or a pair: its type, as a record has
it, and its text.
"""

import csv
import gzip
import io
import json
import math
import random
import re
import struct
import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path


# Equal values ---------------------------------------------------------------------------------------------------------

# These have texts only: whoever reads them knows the types.
UNTYPED = {"csv", "xml", "xlsx"}
# And these cannot tell null from an empty text.
WITHOUT_NULL = {"csv", "xml", "xlsx", "xlsx_written"}
# The type of a value in a record, and other types that hold it exactly.
TYPES = {
    "Text": ["Text"],
    "Int": ["Int"],
    "Float": ["Float"],
    # A number that an integer or a float holds exactly is one.
    "Decimal": ["Decimal", "Int", "Float"],
    "Bool": ["Bool"],
    "Bytes": ["Bytes"],
    "Date": ["Text"],
    "Timestamp": ["Text"],
    "Json": ["Json", "Text"],
}
# A row without values is none.
WITHOUT_EMPTY_ROWS = {"xlsx"}
# Types that a pair does not have, and those in which it holds their values.
STAND_INS = {
    # JSON has one type of numbers, and bytes are a text.
    ("json", "Float"): ["Float", "Int", "Decimal"],
    ("json", "Bytes"): ["Text"],
    # Decimals of Arrow are texts in serde.
    ("parquet", "Decimal"): ["Decimal", "Text"],
    ("arrow", "Decimal"): ["Text"],
    # SQLite has no booleans, and a column with the exact digits of decimals is one of texts.
    ("sqlite", "Bool"): ["Int"],
    ("sqlite", "Decimal"): ["Text"],
}


def same(pair, kind, expected, found):
    if expected is None or found is None:
        without_value = (None, "") if pair in WITHOUT_NULL else (None,)
        return expected in without_value and (found is None or found[1] in without_value)
    type_, text = found
    allowed = ["Text"] if pair in UNTYPED else STAND_INS.get((pair, kind), TYPES[kind])
    try:
        return type_ in allowed and SAME[kind](kept(pair, kind, expected), kept(pair, kind, text))
    except (ValueError, ArithmeticError):
        return False


def kept(pair, kind, text):
    """Returns what the other program, or the format, keeps of a value."""
    match pair, kind:
        case "xlsx", "Int":
            # Numbers are floats, of which openpyxl writes 16 digits.
            return str(int(float(f"{int(text):.16g}")))
        case "xlsx", "Float":
            return sixteen_digits(float(text))
        case "sqlite", "Float" if float(text) == 0:
            # A real that is an integer is stored as one, and there is none for -0.0.
            return "0.0"
    return text


def sixteen_digits(number):
    """openpyxl writes 16 digits; of the largest floats they are more than a float holds."""
    text = f"{number:.16g}"
    return text if math.isfinite(float(text)) else text.replace("316e", "315e")


def same_float(one, other):
    # Also -0.0.
    return struct.pack("d", float(one)) == struct.pack("d", float(other))


def same_bool(one, other):
    return other in {"true": ("true", "1"), "false": ("false", "0")}[one]


def same_bytes(one, other):
    return other.removeprefix("\\x") == one


def same_instant(one, other):
    if " BC" in one or "infinity" in one:
        return one == other.replace("500000", "5")
    # `2024-02-29 12:30:00.5` and `2024-02-29T12:30:00.500000`.
    fraction = lambda text: re.sub(r"\.(\d+)$", lambda found: "." + found[1].ljust(6, "0"), text)
    return datetime.fromisoformat(fraction(one)) == datetime.fromisoformat(fraction(other))


def same_json(one, other):
    numbers = dict(parse_float=Decimal, parse_int=Decimal)
    return one == other or json.loads(one, **numbers) == json.loads(other, **numbers)


SAME = {
    "Text": lambda one, other: one == other,
    "Int": lambda one, other: int(one) == int(other),
    "Float": same_float,
    # 1.50 and 1.5 are one number.
    "Decimal": lambda one, other: Decimal(one) == Decimal(other),
    "Bool": same_bool,
    "Bytes": same_bytes,
    "Date": lambda one, other: one == other,
    "Timestamp": same_instant,
    "Json": same_json,
}


def value(found):
    """Returns a value of Python as a record has it."""
    match found:
        case None:
            return None
        case bool():
            return ("Bool", "true" if found else "false")
        case int():
            return ("Int", str(found))
        case float():
            return ("Float", repr(found))
        case Decimal():
            return ("Decimal", str(found))
        case bytes():
            return ("Bytes", found.hex())
        case datetime() | date():
            return ("Text", found.isoformat())
        case _:
            return ("Text", found)


def native(kind, text):
    """Returns a value of a document as Python has it."""
    if text is None:
        return None
    convert = {
        "Int": int,
        "Float": float,
        "Decimal": Decimal,
        "Bool": lambda text: text == "true",
        "Bytes": bytes.fromhex,
        "Date": date.fromisoformat,
        "Timestamp": datetime.fromisoformat,
    }
    return convert.get(kind, str)(text)


# Files of text --------------------------------------------------------------------------------------------------------


class Csv:
    # The names of Python for those of the WHATWG, which are of supersets.
    ENCODINGS = {"shift_jis": "cp932", "utf-8": "utf-8-sig"}

    def dialect(options):
        delimiter = options["delimiter"].replace("tab", "\t")
        dialect = dict(delimiter=delimiter, quotechar=options["quote"], strict=True)
        if escape := options.get("escape"):
            dialect |= dict(escapechar=escape, doublequote=False)
        return dialect

    def read(path, document):
        csv.field_size_limit(1 << 30)
        options = document["writing"]
        encoding = Csv.ENCODINGS.get(options["encoding"], options["encoding"])
        with open(path, newline="", encoding=encoding) as file:
            rows = list(csv.reader(file, **Csv.dialect(options)))
        names = document["names"] if options.get("header") == "false" or not rows else rows.pop(0)
        return names, [[value(field) for field in row] for row in rows]

    def write(path, document, chance):
        options = document["reading"]
        end = chance.choice(["\n", "\r\n", "\r"])
        quoting = chance.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
        # Where it can do without quotes, Python escapes outside of them, and quotes neither a comment nor the line ends that it does not use.
        if "escape" in options or "comment" in options or end != "\r\n":
            quoting = csv.QUOTE_ALL
        # The name of an only column that contains the delimiter of other files.
        if len(document["names"]) == 1:
            quoting = csv.QUOTE_ALL
        encoding = options["encoding"]
        if encoding == "utf-16":
            encoding = chance.choice(["utf-16-le", "utf-16-be"])
        file = io.StringIO(newline="")
        writer = csv.writer(file, quoting=quoting, lineterminator=end, **Csv.dialect(options))
        if options.get("header") != "false":
            writer.writerow(document["names"])
        for row in document["rows"]:
            kinds = zip(document["kinds"], row)
            writer.writerow(["\\x" + text if kind == "Bytes" and text is not None else text for kind, text in kinds])
        text = file.getvalue()
        # A text that begins with U+FEFF needs a byte-order mark before it, or the character would be taken for one.
        is_marked = encoding.startswith("utf-16") or text.startswith("\ufeff")
        if is_marked or encoding in ("utf-8", "gb18030") and chance.random() < 0.5:
            text = "\ufeff" + text
        path.write_bytes(text.encode({"shift_jis": "cp932"}.get(encoding, encoding)))


class Json:
    def parse(text):
        loaded = json.loads(text, parse_float=Decimal)
        return list(loaded), [value(found) for found in loaded.values()]

    def read(path, document):
        text = open_decompressed(path).read().decode()
        if path.suffix == ".json":
            # In pairs, which show the order of the names and one that is there twice.
            loaded = json.loads(text, parse_float=Decimal, object_pairs_hook=list)
            rows = [([name for name, _ in row], [value(found) for _, found in row]) for row in loaded]
        else:
            rows = [Json.parse(line) for line in text.split("\n") if line]
        names = rows[0][0] if rows else document["names"]
        return names, [found if other == names else f"names: {other}" for other, found in rows]

    def object(document, row, chance):
        ascii_only = chance.random() < 0.5
        comma, colon = chance.choice([(",", ":"), (", ", ": "), (" ,\t", " : ")])

        def text(kind, text):
            if text is None:
                return "null"
            if kind in ("Int", "Decimal", "Bool", "Json"):
                return text
            if kind == "Float":
                return repr(float(text))
            return json.dumps("\\x" + text if kind == "Bytes" else text, ensure_ascii=ascii_only)

        names = [json.dumps(name, ensure_ascii=ascii_only) for name in document["names"]]
        values = [text(kind, found) for kind, found in zip(document["kinds"], row)]
        return "{" + comma.join(f"{name}{colon}{found}" for name, found in zip(names, values)) + "}"

    def write(path, document, chance):
        objects = [Json.object(document, row, chance) for row in document["rows"]]
        end = chance.choice(["\n", "\r\n"])
        if path.suffix == ".json":
            blank = chance.choice(["", " ", end, end + "\t"])
            text = f"{blank}[{blank}" + f"{blank},{blank}".join(objects) + f"{blank}]{blank}"
        else:
            text = end.join(objects) + (end if objects and chance.random() < 0.8 else "")
        data = text.encode()
        if chance.random() < 0.2:
            data = b"\xef\xbb\xbf" + data
        path.write_bytes(compressed(path, data, chance))


def open_decompressed(path):
    if path.suffix == ".gz":
        return gzip.open(path)
    if path.suffix == ".zst":
        import zstandard

        return zstandard.ZstdDecompressor().stream_reader(open(path, "rb"), read_across_frames=True)
    return open(path, "rb")


def compressed(path, data, chance):
    """Returns data as several members or frames, of which some are empty."""
    if path.suffix not in (".gz", ".zst"):
        return data
    cuts = sorted(chance.randint(0, len(data)) for _ in range(chance.randint(0, 4)))
    parts = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)])]
    return b"".join(member(path, part, chance) for part in parts)


def member(path, data, chance):
    if path.suffix == ".gz":
        return gzip.compress(data, chance.randint(0, 9)) if chance.random() < 0.5 else named_member(data)
    import zstandard

    level = chance.choice([-3, 1, 3, 19])
    options = dict(level=level, write_checksum=chance.random() < 0.5, write_content_size=chance.random() < 0.5)
    frame = zstandard.ZstdCompressor(**options).compress(data)
    skippable = b"\x50\x2a\x4d\x18\x05\0\0\0extra" if chance.random() < 0.2 else b""
    return skippable + frame


def named_member(data):
    import io

    buffer = io.BytesIO()
    with gzip.GzipFile("a name.csv", "wb", fileobj=buffer) as file:
        file.write(data)
    return buffer.getvalue()


# XML ------------------------------------------------------------------------------------------------------------------


class Xml:
    def read(path, document):
        from lxml import etree

        root = etree.parse(str(path)).getroot()
        rows = []
        for row in root:
            found = {f"@{name}": text for name, text in row.attrib.items()}
            for child in row:
                assert len(child) == 0 and child.tag not in found
                found[child.tag] = child.text or ""
            extra = set(found) - set(document["names"])
            # A missing attribute or element is null.
            rows.append([value(found.get(name)) for name in document["names"]] if not extra else f"names: {extra}")
        return document["names"], rows

    def write(path, document, chance):
        from lxml import etree

        encoding = document["reading"]["encoding"]
        root = etree.Element("items", nsmap=chance.choice([None, {None: "urn:a"}, {"p": "urn:a"}]))
        space = "{urn:a}" if root.nsmap and chance.random() < 0.9 else ""
        for row in document["rows"]:
            parent = etree.SubElement(root, "group") if chance.random() < 0.2 else root
            if chance.random() < 0.2:
                parent.append(etree.Comment(" <row> "))
            element = etree.SubElement(parent, space + "row")
            for name, kind, text in zip(document["names"], document["kinds"], row):
                if name.startswith("@"):
                    if text is not None:
                        element.set(name[1:], text)
                elif text is not None or chance.random() < 0.5:
                    Xml.add(element, space + name, text, chance)
        declared = chance.random() < 0.5 or encoding != "utf-8"
        etree.ElementTree(root).write(str(path), encoding=encoding, xml_declaration=declared, pretty_print=chance.random() < 0.5)

    def add(element, name, text, chance):
        from lxml import etree

        child = etree.SubElement(element, name)
        if text and "]]>" not in text and "\r" not in text and chance.random() < 0.3:
            child.text = etree.CDATA(text)
        else:
            child.text = text


# Typed files ----------------------------------------------------------------------------------------------------------


class Parquet:
    def read(path, document):
        import pyarrow.parquet as parquet

        table = parquet.read_table(path)
        columns = [column.to_pylist() for column in table.columns]
        return table.column_names, [[value(found) for found in row] for row in zip(*columns)]

    def table(document, chance):
        import pyarrow as arrow

        types = {
            "Text": [arrow.string(), arrow.large_string(), arrow.dictionary(arrow.int32(), arrow.string())],
            "Int": [arrow.int64()],
            "Float": [arrow.float64()],
            "Decimal": [arrow.decimal128(38, 10)],
            "Bool": [arrow.bool_()],
            "Bytes": [arrow.binary(), arrow.large_binary()],
            "Date": [arrow.date32(), arrow.date64()],
            "Timestamp": [arrow.timestamp("us")],
        }
        columns = []
        for index, kind in enumerate(document["kinds"]):
            values = [native(kind, row[index]) for row in document["rows"]]
            columns.append(arrow.array(values, type=chance.choice(types[kind])))
        return arrow.table(columns, names=document["names"])

    def write(path, document, chance):
        import pyarrow.parquet as parquet

        options = dict(
            compression=chance.choice(["none", "snappy", "gzip", "zstd"]),
            use_dictionary=chance.random() < 0.5,
            data_page_version=chance.choice(["1.0", "2.0"]),
            version=chance.choice(["1.0", "2.4", "2.6"]),
            write_statistics=chance.random() < 0.5,
            store_schema=chance.random() < 0.5,
        )
        parquet.write_table(Parquet.table(document, chance), path, row_group_size=chance.choice([1, 3, 1000]), **options)


class Arrow:
    def write(path, document, chance):
        import pyarrow.ipc as ipc

        table = Parquet.table(document, chance)
        compression = chance.choice([None, "lz4", "zstd"])
        with ipc.new_file(path, table.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
            writer.write_table(table, max_chunksize=chance.choice([1, 3, 1000]))


class Xlsx:
    def write(path, document, chance):
        import openpyxl

        book = openpyxl.Workbook(write_only=chance.random() < 0.5)
        sheet = book.create_sheet("Sheet 1", 0)
        cells = lambda texts: [Xlsx.cell(sheet, text) for text in texts]
        sheet.append(cells(document["names"]))
        for row in document["rows"]:
            sheet.append(cells(native(kind, text) for kind, text in zip(document["kinds"], row)))
        book.save(path)

    def read(path, document):
        import openpyxl

        names, options = document["names"], document["writing"]
        rows = list(openpyxl.load_workbook(path)["Sheet1"].iter_rows())
        rows = [row for row in rows if any(cell.value is not None for cell in row)]
        if rows and options.get("header") != "false":
            names = [cell.value for cell in rows.pop(0)]
        columns = options["columns"].split(", ") if "columns" in options else names
        types = [column.removeprefix(name).strip().split("(")[0] for name, column in zip(document["names"], columns)]
        return names, [Xlsx.values(document["kinds"], types, row) for row in rows]

    def values(kinds, types, row):
        """Returns the values of a row, whose last cells may be missing."""
        cells = list(row) + [None] * (len(kinds) - len(row))
        return [cell and Xlsx.value(kind, type_, cell) for kind, type_, cell in zip(kinds, types, cells)]

    def value(kind, type_, cell):
        found = cell.value
        if cell.data_type == "f" or cell.hyperlink:
            return ("Formula", found)
        if cell.is_date != (type_ in ("date", "timestamp")) and found is not None:
            return ("Format", cell.number_format)
        if type_ == "date" and found is not None:
            return ("Text", found.date().isoformat() if found == datetime(found.year, found.month, found.day) else found.isoformat())
        if type_ == "text" and isinstance(found, str):
            return (TYPES[kind][0], found)
        if type_ == "text" and found is not None:
            return ("Number", repr(found))
        return value(found)

    def cell(sheet, found):
        from openpyxl.cell import WriteOnlyCell

        if isinstance(found, float):
            return float(sixteen_digits(found))
        if not isinstance(found, str):
            return found
        # Not a formula.
        cell = WriteOnlyCell(sheet, value="x")
        cell.value = found
        cell.data_type = "s"
        return cell


# Tables ---------------------------------------------------------------------------------------------------------------


def quoted(name, quote='"'):
    return quote + name.replace(quote, quote * 2) + quote


def create(document, table, types):
    columns = [f"{quoted(name)} {types[kind]}" for name, kind in zip(document["names"], document["kinds"])]
    return f"CREATE TABLE {table} ({', '.join(columns)});\n"


class Sqlite:
    TYPES = {
        "Text": "TEXT",
        "Int": "INTEGER",
        "Float": "REAL",
        "Decimal": "TEXT",
        "Bool": "BOOLEAN",
        "Bytes": "BLOB",
        "Date": "DATE",
        "Timestamp": "TIMESTAMP",
    }

    def shell(url, statements):
        path = url.removeprefix("sqlite://").split("?")[0]
        arguments = ["sqlite3", "-batch", "-bail", "-noheader", "-separator", "|", path]
        done = subprocess.run(arguments, input=statements.encode(), capture_output=True, check=False)
        if done.returncode or done.stderr:
            raise SystemExit(done.stderr.decode(errors="replace"))
        return done.stdout.decode()

    def prepare(documents, folder, url):
        statements = ["PRAGMA journal_mode = WAL;\nBEGIN;\n"]
        for document in documents:
            statements.append(create(document, document["name"], Sqlite.TYPES))
            table = f"theirs_{document['name']}"
            statements.append(create(document, table, Sqlite.TYPES))
            for row in document["rows"]:
                literals = [Sqlite.literal(kind, text) for kind, text in zip(document["kinds"], row)]
                statements.append(f"INSERT INTO {table} VALUES ({', '.join(literals)});\n")
        Sqlite.shell(url, "".join(statements) + "COMMIT;\n")

    def literal(kind, text):
        """Returns a value in SQL. The shell reads floats inexactly, and its lines have neither U+0000 nor CR at the end."""
        if text is None:
            return "NULL"
        if kind == "Bytes":
            return f"X'{text}'"
        if kind == "Bool":
            return "1" if text == "true" else "0"
        if kind == "Float":
            return f"ieee754_from_blob(X'{struct.pack('>d', float(text)).hex()}')"
        if kind == "Int":
            # The literal is the negative of a float.
            return "-9223372036854775807 - 1" if text == "-9223372036854775808" else text
        return f"CAST(X'{text.encode().hex()}' AS TEXT)" if re.search("[\0\r]", text) else quoted(text, "'")

    def read_all(documents, folder, url):
        queries = []
        for document in documents:
            name = document["name"]
            # The shell ends a text at U+0000, and shows 15 digits of a float.
            shown = (
                "typeof({0}), CASE typeof({0}) WHEN 'text' THEN hex({0}) WHEN 'blob' THEN hex({0}) "
                "WHEN 'real' THEN hex(ieee754_to_blob({0})) ELSE quote({0}) END"
            )
            columns = ", ".join(shown.format(quoted(column)) for column in document["names"])
            queries.append(f".print {name}\nSELECT {columns} FROM {name} ORDER BY n;\n")
        tables, rows = {}, None
        for line in Sqlite.shell(url, "".join(queries)).splitlines():
            if line.startswith("t") and "|" not in line:
                rows = tables[line] = []
            else:
                fields = line.split("|")
                rows.append([Sqlite.value(*pair) for pair in zip(fields[::2], fields[1::2])])
        return {document["name"]: (document["names"], tables[document["name"]]) for document in documents}

    def value(type_, text):
        match type_:
            case "null":
                return None
            case "text":
                return ("Text", bytes.fromhex(text).decode())
            case "blob":
                return ("Bytes", text.lower())
            case "integer":
                return ("Int", text)
        return ("Float", repr(*struct.unpack(">d", bytes.fromhex(text))))


class Postgres:
    TYPES = {
        "Text": "text",
        "Int": "bigint",
        "Float": "double precision",
        "Decimal": "numeric",
        "Bool": "boolean",
        "Bytes": "bytea",
        "Date": "date",
        "Timestamp": "timestamp",
    }
    ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f", "\v": "\\v"}
    UNESCAPES = {escaped[1]: plain for plain, escaped in ESCAPES.items()}

    def shell(url, folder, statements):
        script = folder / "script.sql"
        script.write_text(statements, newline="")
        arguments = ["psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction", "--file", script, url]
        done = subprocess.run(arguments, capture_output=True, check=False, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)

    def prepare(documents, folder, url):
        statements = []
        for document in documents:
            name = document["name"]
            statements.append(create(document, name, Postgres.TYPES))
            statements.append(create(document, f"theirs_{name}", Postgres.TYPES))
            escape = lambda kind, text: "\\N" if text is None else Postgres.escaped(kind, text)
            rows = [[escape(kind, text) for kind, text in zip(document["kinds"], row)] for row in document["rows"]]
            (folder / "theirs" / name).write_text("".join("\t".join(row) + "\n" for row in rows), newline="")
            statements.append(f"\\copy theirs_{name} from '{folder}/theirs/{name}'\n")
        Postgres.shell(url, folder, "".join(statements))

    def escaped(kind, text):
        text = "\\x" + text if kind == "Bytes" else text
        return "".join(Postgres.ESCAPES.get(character, character) for character in text)

    def read_all(documents, folder, url):
        statements = [f"\\copy (SELECT * FROM {document['name']} ORDER BY n) to '{folder}/ours/{document['name']}'\n" for document in documents]
        Postgres.shell(url, folder, "".join(statements))
        tables = {}
        for document in documents:
            lines = (folder / "ours" / document["name"]).read_bytes().decode().split("\n")[:-1]
            rows = [[Postgres.value(*field) for field in zip(document["kinds"], line.split("\t"))] for line in lines]
            tables[document["name"]] = (document["names"], rows)
        return tables

    def value(kind, field):
        if field == "\\N":
            return None
        text = re.sub(r"\\(.)", lambda found: Postgres.UNESCAPES[found[1]], field)
        if kind == "Bool":
            return ("Bool", {"t": "true", "f": "false"}[text])
        return (TYPES[kind][0], text)


# Both directions ------------------------------------------------------------------------------------------------------

FILES = {
    "csv": Csv,
    "json_lines": Json,
    "json_array": Json,
    "gzip": Json,
    "zstd": Json,
    "xml": Xml,
    "parquet": Parquet,
    "arrow": Arrow,
    "xlsx": Xlsx,
}
TABLES = {"sqlite": Sqlite, "postgres": Postgres}
MODULES = {"zstd": ["zstandard"], "xml": ["lxml"], "parquet": ["pyarrow"], "arrow": ["pyarrow"], "xlsx": ["openpyxl"]}


def prepare(pair, documents, folder, url):
    if pair in TABLES:
        return TABLES[pair].prepare(documents, folder, url)
    for document in documents:
        FILES[pair].write(folder / "theirs" / document["name"], document, random.Random(document["seed"]))


def compare(pair, document, side, names, rows):
    """Prints the first difference."""
    seed, wanted = document["seed"], document["rows"]
    if pair in WITHOUT_EMPTY_ROWS:
        wanted = [row for row in wanted if any(row)]
    if names != document["names"]:
        return print(f"seed {seed}: {side}: the names are {names!a}, not {document['names']!a}")
    if len(rows) != len(wanted):
        return print(f"seed {seed}: {side}: {len(rows)} rows, not {len(wanted)}")
    family = "json" if FILES.get(pair) is Json else pair
    if pair == "xlsx" and side == "we wrote":
        # It has types, and all digits.
        family = "xlsx_written"
    for number, (expected, found) in enumerate(zip(wanted, rows), 1):
        if len(expected) != len(found) or isinstance(found, str):
            return print(f"seed {seed}: {side}: row {number}: {found!a}, not {expected!a}"[:1000])
        for name, kind, one, other in zip(names, document["kinds"], expected, found):
            if not same(family, kind, one, other):
                return print(f"seed {seed}: {side}: row {number}, {kind} {name!a}: {other!a}, not {one!a}"[:1000])


def found_records(path, document):
    """Returns what our reader has read."""
    lines = [json.loads(line) for line in path.read_text().split("\n") if line]
    names = lines[0][0] if lines else document["names"]
    rows = [[found and tuple(found) for found in row] if other == names else f"names: {other}" for other, row in lines]
    return names, rows


def check(pair, documents, folder, url):
    tables = TABLES[pair].read_all(documents, folder, url) if pair in TABLES else {}
    for document in documents:
        name = document["name"]
        compare(pair, document, "we read", *found_records(folder / "found" / name, document))
        if pair in TABLES:
            compare(pair, document, "we wrote", *tables[name])
        elif (folder / "ours" / name).exists():
            try:
                compare(pair, document, "we wrote", *FILES[pair].read(folder / "ours" / name, document))
            except Exception as error:
                print(f"seed {document['seed']}: we wrote: it cannot be read: {error!r}"[:1000])


def main():
    verb, pair, folder, url = sys.argv[1:]
    for module in MODULES.get(pair, []):
        try:
            __import__(module)
        except ImportError:
            return print(f"MISSING Python's module {module} is not installed")
    folder = Path(folder)
    documents = [json.loads(line) for line in (folder / "documents").read_text().split("\n") if line]
    {"prepare": prepare, "check": check}[verb](pair, documents, folder, url)


main()
