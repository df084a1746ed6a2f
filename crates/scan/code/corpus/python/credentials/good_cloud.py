import configparser, os

parser = configparser.ConfigParser()
with open(os.path.join(os.path.dirname(__file__), "settings.ini")) as file:
    parser.read_file(file)
