import requests

def list_plugins():
    answer = requests.get("https://plugins.example/index.json")
    answer.raise_for_status()
    return [plugin["name"] for plugin in answer.json()]
