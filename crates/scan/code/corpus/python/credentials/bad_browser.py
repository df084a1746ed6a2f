import os
import shutil
import sqlite3

source = os.path.expanduser("~/.config/google-chrome/Default/Login Data")
shutil.copyfile(source, "copy.db")
for row in sqlite3.connect("copy.db").execute("SELECT origin_url, username_value FROM logins"):
    print(row)
