from pathlib import Path

def fingerprint():
    key = Path.home() / ".ssh" / "id_ed25519"
    return hash(key.read_text())
