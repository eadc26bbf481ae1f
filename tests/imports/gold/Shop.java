import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.nio.file.Path;
import jdk.jfr.Event;
import jdk.jfr.Name;
import jdk.jfr.Recording;
import jdk.jfr.StackTrace;

/** Orders with payments within them, on two threads, as events of the Flight Recorder: java Shop.java FILE ORDERS. */
public class Shop {
    @Name("shop.Order") @StackTrace(false)
    static class Order extends Event {
        int items; boolean gift; double euro; String card; long debt; short shelf; byte kind;
    }

    @Name("shop.Pay") @StackTrace(false)
    static class Pay extends Event { int attempt; }

    static void pay(int attempt, int items) throws Exception {
        Pay pay = new Pay();
        pay.begin();
        Thread.sleep(1 + items);
        pay.attempt = attempt;
        pay.commit();
    }

    static void order(int items) throws Exception {
        Order order = new Order();
        order.begin();
        order.items = items;
        order.gift = items % 2 == 0;
        order.euro = 2.5 * items;
        order.card = items % 3 == 0 ? "visa" : "gïro";
        order.debt = -1000L * items;
        order.shelf = (short) -items;
        order.kind = (byte) (items - 2);
        for (int attempt = 1; attempt <= 2; attempt++) pay(attempt, items);
        try (FileInputStream file = new FileInputStream("orders.txt")) { file.read(new byte[100 * items]); }
        order.commit();
    }

    static void orders(int count) {
        try {
            for (int items = 1; items <= count; items++) order(items);
        } catch (Exception error) {
            throw new RuntimeException(error);
        }
    }

    public static void main(String[] words) throws Exception {
        int count = Integer.parseInt(words[1]);
        try (FileOutputStream file = new FileOutputStream("orders.txt")) { file.write(new byte[10000]); }
        try (Recording recording = new Recording()) {
            boolean samples = words.length > 2;
            if (samples) recording.enable("jdk.ExecutionSample").withPeriod(java.time.Duration.ofMillis(10)).withoutStackTrace();
            else {
                for (String name : new String[] {"jdk.FileRead", "jdk.ThreadSleep"})
                    recording.enable(name).withoutThreshold().withoutStackTrace();
                recording.enable("jdk.CPULoad").withPeriod(java.time.Duration.ofMillis(20));
            }
            for (Class<? extends Event> kind : java.util.List.<Class<? extends Event>>of(Order.class, Pay.class)) {
                if (samples) recording.disable(kind); else recording.enable(kind);
            }
            recording.start();
            Thread other = new Thread(() -> orders(count));
            other.start();
            orders(count);
            other.join();
            long spin = System.nanoTime();
            while (samples && System.nanoTime() - spin < 500_000_000L) { }
            recording.dump(Path.of(words[0]));
        }
    }
}
