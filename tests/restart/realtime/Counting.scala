import org.apache.spark.sql.{DataFrame, Encoders}
import org.apache.spark.sql.streaming._

/** Counts the rows of each key: a processor of transformWithState in Scala. */
class Counting extends StatefulProcessor[String, String, (String, Long)] {
  @transient private var counted: ValueState[Long] = _

  override def init(outputMode: OutputMode, timeMode: TimeMode): Unit =
    counted = getHandle.getValueState[Long]("counted", Encoders.scalaLong, TTLConfig.NONE)

  override def handleInputRows(key: String, rows: Iterator[String], timers: TimerValues): Iterator[(String, Long)] = {
    val total = (if (counted.exists()) counted.get() else 0L) + rows.size
    counted.update(total)
    Iterator((key, total))
  }
}

object Counting {
  /** How many rows of `frame` have a key that ends in each digit. */
  def of(frame: DataFrame): DataFrame =
    frame
      .selectExpr("right(CAST(key AS STRING), 1)")
      .as[String](Encoders.STRING)
      .groupByKey((digit: String) => digit)(Encoders.STRING)
      .transformWithState(new Counting, TimeMode.None(), OutputMode.Update())(Encoders.product[(String, Long)])
      .toDF("digit", "total")
}
