from pathlib import Path

def fingerprint():
    key = Path("fixtures") / "public" / "key.txt"
    return hash(key.read_text())
