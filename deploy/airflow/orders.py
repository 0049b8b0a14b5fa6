"""A query that is started only where ckpt says that it can be; any exit code but 0 fails the first task."""

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG("orders", schedule=None, catchup=False):
    preflight = BashOperator(
        task_id="preflight",
        bash_command="ckpt preflight /checkpoints/orders --spark 4.2 --must-exist --fix safe",
    )
    start = BashOperator(
        task_id="start",
        bash_command="spark-submit --master yarn --deploy-mode cluster orders.py",
    )
    preflight >> start
