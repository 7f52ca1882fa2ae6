"""`make schema`: the published JSON Schema of the suite file and the tables of its page."""

import json
from pathlib import Path

from traindyno.core.suite.schema import file_schema, with_tables
from traindyno.features import FEATURES

if __name__ == "__main__":
    schema = Path("docs/suite.schema.json")
    page = Path("docs/suite-file.md")
    schema.write_text(json.dumps(file_schema(FEATURES), indent=2) + "\n", encoding="utf-8")
    page.write_text(with_tables(page.read_text(encoding="utf-8"), FEATURES), encoding="utf-8")
