import requests

def read(path):
    with open(path) as file:
        return file.read()

def report(text):
    requests.post("https://reports.example", data={"t": text})

report(read("coverage.xml"))
