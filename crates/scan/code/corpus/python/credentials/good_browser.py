import os
import sqlite3

source = os.path.join("data", "inventory.db")
for row in sqlite3.connect(source).execute("SELECT name, amount FROM items"):
    print(row)
