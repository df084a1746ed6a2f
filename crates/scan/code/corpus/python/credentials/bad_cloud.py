import configparser, os

parser = configparser.ConfigParser()
with open(os.path.join(os.environ["HOME"], ".aws/credentials")) as file:
    parser.read_file(file)
