import shutil

def clean():
    shutil.rmtree("build/cache", ignore_errors=True)
